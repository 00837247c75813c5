"""What hooks give: merged by rules, frozen, and told once."""

from __future__ import annotations

import logging
import re
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import metadata
from typing import Any

import numpy as np
import pytest

import polyax.runtime.running.dispatch  # noqa: F401  # evaluates what the tests run
from polyax.api.jit import jit
from polyax.ir.config import config
from polyax.ir.errors import PluginError
from polyax.ir.primitive import PRIMITIVES
from polyax.ops.elementwise import sin
from polyax.reference.backend import ReferenceBackend
from polyax.runtime.arrays.devices import devices
from polyax.runtime.arrays.placing import device_put
from polyax.runtime.contract.backend import BackendSpec
from polyax.runtime.contract.hooks import hookimpl
from polyax.runtime.plugins import advice, rules
from polyax.runtime.plugins.default_device import default_device
from polyax.runtime.plugins.registry import Registry, registry

SIN, COS = PRIMITIVES[:2]


class Lowering:
    def __init__(self, priority: int = 0) -> None:
        self.priority = priority
        self.why_not = lambda avals, params: None

    def why_not(self, avals: Any, params: Any) -> None:
        return None


def plugin(**hooks: Callable[..., Any]) -> types.SimpleNamespace:
    return types.SimpleNamespace(**{name: hookimpl(function) for name, function in hooks.items()})


def lowers(table: dict[Any, Any]) -> types.SimpleNamespace:
    def polyax_lowerings(backend: Any) -> dict[Any, Any]:
        return table

    return plugin(polyax_lowerings=polyax_lowerings)


def brings(name: str, probe: Any = lambda: None, **options: Any) -> types.SimpleNamespace:
    class Fake(ReferenceBackend):
        pass

    Fake.name = name

    def polyax_backends() -> Iterator[BackendSpec]:
        yield BackendSpec(name, probe=probe, open=Fake, **options)

    return plugin(polyax_backends=polyax_backends)


@pytest.fixture
def own() -> Registry:
    """A registry that knows only the built-in plugins."""
    return Registry(list)


def test_backends_come_by_priority(own: Registry) -> None:
    own.register(brings("low", priority=-5), "low")
    own.register(brings("high", priority=5), "high")
    assert own.names() == ["high", "low", "reference"]
    assert own.backend("high") is own.backend("high")
    assert repr(own.backend("high").devices()[0]) == "HighDevice(id=0)"


def test_a_priority_may_depend_on_what_is_there(own: Registry) -> None:
    """It is asked once, and only of a platform that can be used."""
    asked: list[int] = []

    def priority() -> int:
        asked.append(1)
        return -7

    own.register(brings("low", priority=-5), "low")
    own.register(brings("asked", priority=priority), "asked")
    own.register(brings("gone", priority=lambda: 1 // 0, probe=lambda: "nothing there"), "gone")
    assert own.names() == own.names() == ["gone", "low", "asked", "reference"]
    assert own.priority("asked") == -7 and asked == [1]


@pytest.mark.parametrize("priority", [lambda: "first", lambda: 1 // 0])
def test_a_priority_that_is_none_makes_a_platform_unusable(own: Registry, priority: Any) -> None:
    own.register(brings("odd", priority=priority), "odd", distribution="polyax-odd", version="1.2.3")
    with pytest.warns(UserWarning, match=r"plugin 'odd' of polyax-odd 1.2.3 can't be used: .*priority"):
        assert own.priority("odd") == 0
    assert "priority" in str(own.why_unusable("odd"))


def test_backend_of_one_name_twice_raises(own: Registry) -> None:
    own.register(brings("fake"), "fake", distribution="one")
    record = own.register(brings("fake"), "fake", distribution="two")
    with pytest.raises(PluginError, match=r"named 'fake': plugin 'fake' of one and plugin 'fake' of two"):
        own.backend("fake")
    own.unregister(record)
    assert own.backend("fake").name == "fake"


@pytest.mark.parametrize(
    "answer, cause",
    [
        (BackendSpec("fake", lambda: None, ReferenceBackend), r"gave BackendSpec\(name='fake'.*\), not a list of"),
        (3, "polyax_backends gave 3, not a list of BackendSpec"),
        ([BackendSpec("fake", lambda: None, ReferenceBackend)] * 2, "gave two of the name 'fake'"),
        ([BackendSpec("a chip", lambda: None, ReferenceBackend)], "name of a BackendSpec is 'a chip'; .* give a word"),
        ([BackendSpec("", lambda: None, ReferenceBackend)], "name of a BackendSpec is ''"),
        ([BackendSpec("fake", lambda: None, ReferenceBackend, note=3)], "note of the BackendSpec 'fake' is 3, not a"),  # type: ignore[arg-type]
    ],
)
def test_specs_that_are_none_are_refused(own: Registry, answer: Any, cause: str) -> None:
    with pytest.raises(PluginError, match=cause):
        own.register(plugin(polyax_backends=lambda: answer), "fake")


@pytest.mark.parametrize("error", [SystemExit("no license"), GeneratorExit("no license")])
def test_whatever_a_probe_raises_the_program_goes_on(own: Registry, error: BaseException) -> None:
    def probe() -> None:
        raise error

    own.register(brings("fake", probe), "fake")
    with pytest.warns(UserWarning, match=f"{type(error).__name__} while probing 'fake': no license"):
        assert own.why_unusable("fake") is not None
    interrupted = brings("other", probe=lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    own.register(interrupted, "other")
    with pytest.raises(KeyboardInterrupt):
        own.why_unusable("other")


def test_a_backend_that_asks_for_itself_while_it_is_opened(own: Registry) -> None:
    class Eager(ReferenceBackend):
        name = "eager"

        def __init__(self) -> None:
            own.backend("eager")

    own.register(plugin(polyax_backends=lambda: [BackendSpec("eager", lambda: None, Eager)]), "eager")
    cause = "it computes or asks for devices while opening 'eager', before it is ready: do so in Backend.opened"
    with pytest.warns(UserWarning) as warned, pytest.raises(RuntimeError, match=cause):
        own.backend("eager")
    assert [cause in str(w.message) for w in warned] == [True]


@pytest.mark.parametrize("name", ["cpu", "opencl", "cuda", "hello_c", "wasm"])
def test_a_backend_for_another_contract_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of this repository say which version they were written for, as everybody's do."""
    monkeypatch.setattr(rules, "API", (2, 0))
    everything = Registry()
    with pytest.warns(UserWarning, match=f"plugin '{name}' of polyax-{name.replace('_', '-')} .* can't be used"):
        everything.load(name)
    with pytest.raises(RuntimeError, match="it was written for versions >=1,<2 of .* this polyax has version 2.0"):
        everything.backend(name)


def test_unknown_backend_names_what_is_there(own: Registry) -> None:
    own.register(brings("opencl"), "opencl")
    with pytest.raises(
        RuntimeError, match=r"Unknown backend opncl. .* \['opencl', 'reference'\].*Did you mean 'opencl'"
    ):
        own.backend("opncl")
    with pytest.raises(RuntimeError, match=r'pip install "polyax\[cuda\]"'):
        own.backend("cuda")


def test_extras_that_advice_names_exist() -> None:
    assert set(advice.EXTRAS) == set(metadata("polyax").get_all("Provides-Extra", []))


def test_virtual_devices_of_strangers_can_be_more() -> None:
    record = registry.register(brings("fake"), "fake")
    try:
        with pytest.raises(RuntimeError, match=r"Unknown device 'fake:7': .*; POLYAX_NUM_CPU_DEVICES makes more"):
            default_device("fake:7").__enter__()
    finally:
        registry.unregister(record)


def test_lowerings_serve_their_platform_alone(own: Registry) -> None:
    mine, everybodys = Lowering(), Lowering()
    own.register(lowers({SIN: mine}), "fake.sine")
    own.register(lowers({COS: everybodys}), "any.cosine")
    own.register(brings("fake"), "fake")
    whose = ("plugin 'any.cosine' of this program", everybodys)
    assert dict(own.lowerings(own.backend("fake"))) == {
        SIN: (("plugin 'fake.sine' of this program", mine),),
        COS: (whose,),
    }
    assert dict(own.lowerings(own.backend("reference"))) == {COS: (whose,)}


def test_equal_claims_on_a_primitive_raise_and_unequal_ones_do_not(own: Registry) -> None:
    strong = Lowering(1)
    own.register(lowers({SIN: Lowering()}), "reference.a", distribution="one")
    second = own.register(lowers({SIN: Lowering()}), "reference.b", distribution="two")
    message = rf"lowering of '{SIN.name}' with priority 0: plugin 'reference.a' of one and plugin 'reference.b' of two"
    with pytest.raises(PluginError, match=message):
        own.lowerings(own.backend("reference"))
    own.unregister(second)
    own.register(lowers({SIN: strong}), "reference.c", version="2.1")
    rules = [rule for rule, _ in own.lowerings(own.backend("reference"))[SIN]]
    assert rules == ["plugin 'reference.c' of this program 2.1", "plugin 'reference.a' of one"], (
        "the weaker one is there to be asked next"
    )


def test_results_are_frozen_and_asked_for_once(own: Registry) -> None:
    calls: list[str] = []

    def polyax_fusers(backend: Any) -> list[Any]:
        calls.append(backend.name)
        return [fuser("merger")]

    own.register(plugin(polyax_fusers=polyax_fusers), "any.fusion")
    fusers = own.fusers(own.backend("reference"))
    assert list(fusers) == ["merger"] and own.fusers(own.backend("reference")) is fusers
    assert calls == ["reference"]
    with pytest.raises(TypeError):
        fusers["merger"] = None  # type: ignore[index]


def fuser(name: str) -> types.SimpleNamespace:
    return types.SimpleNamespace(name=name, run=lambda graph, limits: graph)


def fuses(*names: str) -> types.SimpleNamespace:
    def polyax_fusers(backend: Any) -> list[Any]:
        return [fuser(name) for name in names]

    return plugin(polyax_fusers=polyax_fusers)


def test_fusers_run_in_the_order_that_is_asked_for(own: Registry) -> None:
    own.register(fuses("one", "two", "three"), "any.fusion")
    backend = own.backend("reference")
    for asked, chosen in ((None, ["two", "one"]), ("three, one", ["three", "one"]), ("", [])):
        assert [f.name for _, f in own.chosen_fusers(backend, asked, ("two", "one"))] == chosen


def test_unknown_fusers_raise(own: Registry) -> None:
    backend = own.backend("reference")
    with pytest.raises(ValueError, match=r"no plugin brings 'merger'. There are: none; `pip install polyax-fusion`"):
        own.chosen_fusers(backend, "merger", ())
    own.register(fuses("instruction", "merger"), "any.fusion", distribution="polyax-own", version="1.2")
    message = (
        r"POLYAX_FUSERS \(config.fusers\) is 'merger,instrction', and no plugin brings 'instrction'. There are: "
        r"instruction \(plugin 'any.fusion' of polyax-own 1.2\), merger \(.*\). Did you mean 'instruction'\?"
    )
    with pytest.raises(ValueError, match=message):
        own.chosen_fusers(backend, "merger,instrction", ())


def test_a_compiler_without_its_fusers_says_so_once(own: Registry) -> None:
    advice.warn_unfused.cache_clear()
    backend, usual = own.backend("reference"), ("instruction", "merger")
    own.register(fuses("merger"), "any.fusion")
    with pytest.warns(UserWarning, match=r"the fusers instruction. `pip install polyax-fusion` brings them"):
        assert [f.name for _, f in own.chosen_fusers(backend, None, usual)] == ["merger"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own.chosen_fusers(backend, None, usual)
        own.chosen_fusers(backend, "", usual)


def test_a_misspelt_fuser_in_the_settings_raises() -> None:
    pytest.importorskip("polyax_cpu")
    with config.override(fusers="instrction"), pytest.raises(ValueError, match="Did you mean 'instruction'"):
        jit(lambda x: sin(sin(x)), device=devices("cpu")[0])(np.ones(2, np.float32))


def test_fusers_of_one_name_raise(own: Registry) -> None:
    def polyax_fusers(backend: Any) -> list[Any]:
        return [fuser("merger")]

    own.register(plugin(polyax_fusers=polyax_fusers), "any.one", distribution="one")
    own.register(plugin(polyax_fusers=polyax_fusers), "any.two", distribution="two")
    with pytest.raises(PluginError, match=r"fuser named 'merger': plugin 'any.one' of one and plugin 'any.two' of two"):
        own.fusers(own.backend("reference"))


def test_plugin_whose_hook_raises_is_left_out(own: Registry) -> None:
    def polyax_lowerings(backend: Any) -> None:
        raise OSError("no such library")

    record = own.register(plugin(polyax_lowerings=polyax_lowerings), "any.bad")
    own.register(lowers({SIN: Lowering()}), "any.good")
    with pytest.warns(UserWarning, match="'any.bad' of this program can't be used: OSError while calling"):
        assert list(own.lowerings(own.backend("reference"))) == [SIN]
    assert record.status == "failed" and "no such library" in record.traceback


@pytest.mark.parametrize(
    "table, cause",
    [
        ({"sin": Lowering()}, "a lowering of 'sin', which is not a Primitive"),
        ({SIN: np.sin}, f"<ufunc 'sin'> for '{SIN.name}', which is not a lowering: it has no why_not and no priority"),
        ({SIN: types.SimpleNamespace(why_not=None)}, "which is not a lowering: it has no priority"),
        ({SIN: Lowering("high")}, f"the priority of the lowering of '{SIN.name}' is 'high', not a number"),  # type: ignore[arg-type]
        ([SIN], r"polyax_lowerings gave .*, not a mapping"),
    ],
)
def test_tables_that_are_none_are_refused(own: Registry, table: Any, cause: str) -> None:
    own.register(lowers(table), "any.bad", distribution="polyax-bad", version="1.2.3")
    own.register(lowers({COS: Lowering()}), "any.good")
    with pytest.warns(UserWarning, match=f"plugin 'any.bad' of polyax-bad 1.2.3 can't be used: .*{cause}"):
        assert list(own.lowerings(own.backend("reference"))) == [COS]


@pytest.mark.parametrize(
    "gives, cause",
    [
        (3, "gave 3, not the fusers"),
        ([3], "gave 3, which is not a fuser"),
        (
            [types.SimpleNamespace(name="lazy")],
            r"gave namespace\(name='lazy'\), which .* needs a name and a function run",
        ),
    ],
)
def test_fusers_that_are_none_are_refused(own: Registry, gives: Any, cause: str) -> None:
    def polyax_fusers(backend: Any) -> Any:
        return gives

    own.register(plugin(polyax_fusers=polyax_fusers), "any.bad", distribution="polyax-bad", version="1.2.3")
    own.register(fuses("merger"), "any.good")
    with pytest.warns(UserWarning, match=f"plugin 'any.bad' of polyax-bad 1.2.3 can't be used: polyax_fusers {cause}"):
        assert list(own.fusers(own.backend("reference"))) == ["merger"]


def counting(dtype: Any) -> ReferenceBackend:
    """A backend that counts the elements of arrays in ``dtype``."""
    backend = ReferenceBackend()
    backend.name, backend.index_dtype = "fake", dtype
    return backend


@pytest.mark.parametrize(
    "opens, cause",
    [
        (ReferenceBackend, "the BackendSpec 'fake' opened a backend named 'reference', not its own"),
        (lambda: None, "the BackendSpec 'fake' opened None, not a Backend"),
        (
            lambda: counting(np.dtype("int16")),
            r"index_dtype of backend 'fake' is dtype\('int16'\); .* give np.dtype\('int64'\)",
        ),
        (lambda: counting("int32"), "index_dtype of backend 'fake' is 'int32'"),
    ],
)
def test_a_backend_that_was_not_promised_is_refused(own: Registry, opens: Any, cause: str) -> None:
    def polyax_backends() -> Iterator[BackendSpec]:
        yield BackendSpec("fake", probe=lambda: None, open=opens)

    own.register(plugin(polyax_backends=polyax_backends), "fake", distribution="polyax-bad", version="1.2.3")
    warned = pytest.warns(UserWarning, match=f"plugin 'fake' of polyax-bad 1.2.3 can't be used: {cause}")
    with warned, pytest.raises(RuntimeError, match=f"Unable to initialize backend 'fake': .*{cause}"):
        own.backend("fake")
    assert own.opened() == []


def test_registering_a_misspelt_hook_raises(own: Registry) -> None:
    def polyax_fuser(backend: Any) -> None: ...

    with pytest.raises(PluginError, match="unknown hook 'polyax_fuser'; did you mean 'polyax_fusers'"):
        own.register(plugin(polyax_fuser=polyax_fuser), "any.typo")


def test_compilations_are_told_once_and_never_per_launch() -> None:
    events: list[Any] = []

    def polyax_compiled(event: Any) -> None:
        events.append(event)

    record = registry.register(plugin(polyax_compiled=polyax_compiled), "reference.listener")
    try:
        with default_device(devices("reference")[0]):
            f = jit(lambda x: sin(sin(x)))
            x = device_put(np.ones(3, np.float32))
            f(x), f(x), f(x)
    finally:
        registry.unregister(record)
    (event,) = events
    assert event.device == devices("reference")[0] and event.seconds >= 0
    assert event.executable.report().backend == "reference"


def test_threads_tell_a_plugin_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=60)

    @hookimpl
    def polyax_compiled(event: Any) -> None:
        meeting.wait()  # until the other thread is in here too

    def compiles(x: float) -> Any:
        with default_device(devices("reference")[0]):
            return jit(lambda y: sin(y) * x)(np.float32(1))

    record = registry.register(plugin(polyax_compiled=polyax_compiled), "reference.meeting")
    try:
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(compiles, (2.0, 3.0)))
    finally:
        registry.unregister(record)
    assert record.status == "loaded" and not meeting.broken, record.cause


def test_log_of_compilations(caplog: pytest.LogCaptureFixture) -> None:
    with default_device(devices("reference")[0]), config.override(log_compiles=True), caplog.at_level(logging.WARNING):
        jit(lambda x: sin(sin(sin(x))), device=None)(np.float32(1))
    told = [r.getMessage() for r in caplog.records]
    assert any(re.match(r"Finished compilation of jit\(.*\) for reference:0 in [0-9.]+ sec", m) for m in told)
    assert any(re.match(r"Compiling jit\(.*\) with global shapes and types \(ShapedArray\(f", m) for m in told)
    assert all(r.levelno == logging.WARNING for r in caplog.records)


def test_compilations_are_told_to_who_debugs(caplog: pytest.LogCaptureFixture) -> None:
    with default_device(devices("reference")[0]), caplog.at_level(logging.DEBUG, logger="polyax"):
        jit(lambda x: sin(sin(sin(sin(x)))), device=None)(np.float32(1))
    assert [r.levelno for r in caplog.records if "with global shapes and types" in r.message] == [logging.DEBUG]
