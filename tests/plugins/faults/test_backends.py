"""What a broken backend does to a user: an error that names plugin, place and remedy; never a wrong number."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from plugins.faults.broken import OWNER, Working, backend, giving, launching, method, plugin, registered

import polyax
import polyax.numpy as jnp
from polyax.errors import JaxRuntimeError
from polyax.ir.errors import PluginError
from polyax.runtime.contract.queue import HostBuffer

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Failure(Exception):
    """The device's own."""


def fails(*_: Any, **__: Any) -> Any:
    raise Failure("the device is on fire")


def program(x: Any = X) -> Any:
    return np.asarray(polyax.jit(lambda x: jnp.sin(x) + 1)(x))


def notes(error: BaseException) -> list[str]:
    return [n for n in getattr(error, "__notes__", ()) if n.startswith("In plugin")]


# --- what it gives ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, text",
    [
        (method("compile", lambda *_: None), "compile gave None for program '<lambda>', not an Executable"),
        (
            launching(lambda right, bs, q: list(right(bs, q))),
            "launch .* not a pair of the list of its",
        ),
        (launching(lambda right, bs, q: None), "launch of program '<lambda>' gave None, not a pair"),
        (launching(lambda right, bs, q: right(bs, q)[0]), "launch of program '<lambda>' gave .*, not a pair"),
        (giving(lambda outs: []), "launch of program '<lambda>' gave 0 results, and the program has 1"),
        (giving(lambda outs: outs * 2), "launch of program '<lambda>' gave 2 results, and the program has 1"),
        (
            giving(lambda outs: [outs[0].data]),
            r"(?s)gave array.* of class ndarray, not a Buffer",
        ),
        (giving(lambda outs: [None]), "gave None of class NoneType, not a Buffer"),
        (
            giving(lambda outs: [HostBuffer(outs[0].data[:1])]),
            r"gave 12 bytes for result 0, which is float32\[2,3\] \(24 bytes\)",
        ),
        (
            giving(lambda outs: [HostBuffer(outs[0].data.T.copy())]),
            r"to_host gave float32\[3, 2\] for .*float32",
        ),
        (giving(lambda outs: [HostBuffer(outs[0].data.astype("f8"))]), r"to_host gave float64\[2, 3\] for .*float32"),
        (
            giving(lambda outs: [HostBuffer(outs[0].data.view("i4"))]),
            r"to_host gave int32\[2, 3\] for .*float32",
        ),
        (method("to_device", lambda *_: None), "to_device gave None of class NoneType, not a Buffer"),
        (method("to_device", lambda self, x, d: HostBuffer(x[:0])), "to_device gave a buffer of 0 bytes for .* 24"),
        (method("to_host", lambda *_: None), r"to_host gave None for an array of type float32\[2,3\]"),
        (method("to_host", lambda self, b, aval: b.data.tolist()), r"to_host gave \[\[.* for an array of type float32"),
    ],
)
def test_what_it_gives_is_checked(kind: type[Any], text: str) -> None:
    with backend(kind), pytest.raises(PluginError, match=text) as caught:
        program()
    told = str(caught.value)
    assert told.startswith(f"{OWNER} breaks the contract of backends on broken:0: "), told
    assert "The remedy: update or uninstall polyax-broken" in told


def test_results_in_the_making_are_checked_when_they_are_read() -> None:
    def launch(right: Any, buffers: Any, queue: Any) -> Any:
        outs, _ = right(buffers, queue)
        late = HostBuffer(np.empty(0))
        late.task = queue.run(lambda: setattr(late, "data", outs[0].data.T.copy()), outs, 10**9)
        return [late], None

    with backend(launching(launch)), pytest.raises(PluginError, match="of type .*, a result of program '<lambda>'"):
        program()


@pytest.mark.parametrize("devices", [(), None, [None]])
def test_devices_are_devices(devices: Any) -> None:
    warned = pytest.warns(UserWarning, match=f"{OWNER} can't be used: devices.. of backend 'broken' gave .*, not its")
    with warned, pytest.raises(RuntimeError, match="Unable to initialize backend 'broken': devices()"):
        backend(method("devices", lambda self: devices)).__enter__()


def numbered(number: Any) -> type[Any]:
    return method("devices", lambda self: self.__dict__.setdefault("_mine", [polyax.Device(self, number, kind="x")]))


@pytest.mark.parametrize(
    "kind, fault",
    [
        (numbered(-1), "gave a device of the number -1: count from 0"),
        (numbered("0"), "gave a device of the number '0'"),
        (method("__hash__", fails), "can't tell programs apart: its __hash__ raised Failure: the device is on fire"),
        (method("__eq__", fails), "its __hash__ raised TypeError: unhashable"),
        (method("__repr__", fails), "its __repr__ raised Failure"),
        (method("__len__", lambda self: 0), "its __bool__ says that it is none"),
    ],
)
def test_devices_and_backends_are_told_apart(kind: type[Any], fault: str) -> None:
    with pytest.warns(UserWarning, match=fault), pytest.raises(RuntimeError, match="Unable to initialize backend"):
        backend(kind).__enter__()


def test_what_says_nothing_is_no_answer() -> None:
    with (
        backend(method("why_no_dtype", lambda self, dtype: "")),
        pytest.raises(PluginError, match="why_no_dtype gave ''"),
    ):
        program()
    stats = method("memory_stats", lambda self, device: {"bytes_in_use": "many"})
    with backend(stats) as device, pytest.raises(PluginError, match="'many'}, not a dict of numbers or None"):
        device.memory_stats()


def test_results_of_a_dtype_that_it_lacks_are_refused() -> None:
    lacks = lambda self, dtype: "it has no integers" if dtype == np.int32 else None
    with (
        backend(method("why_no_dtype", lacks)),
        pytest.raises(TypeError, match=r"a result of type int32\[\] can't live"),
    ):
        polyax.jit(jnp.argmax)(X)


# --- what it raises ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, doing",
    [
        (method("compile", fails), "program '<lambda>' was compiled for broken:0"),
        (launching(fails), "program '<lambda>' was run on broken:0"),
        (method("to_device", fails), r"an array of type float32\[2, 3\] was copied to broken:0"),
        (method("to_host", fails), r"an array of type float32\[2,3\] was made on broken:0"),
    ],
)
def test_what_it_raises_keeps_its_class_and_names_it(kind: type[Any], doing: str) -> None:
    with backend(kind), pytest.raises(Failure, match="the device is on fire") as caught:
        program()
    (note,) = notes(caught.value)
    assert re.fullmatch(f"In {re.escape(OWNER)}, while {doing}.*", note), note


class Frozen(Exception):
    """It refuses to be changed."""

    def add_note(self, note: str) -> None:
        raise AttributeError(note)


class Unusual(BaseException):
    """What ``except Exception`` lets pass."""


@pytest.mark.parametrize("error", [Frozen, Unusual, GeneratorExit, StopIteration])
@pytest.mark.parametrize("name", ["compile", "to_device", "to_host"])
def test_errors_of_odd_classes_name_it_too(error: type[BaseException], name: str) -> None:
    def raises(*_: Any) -> Any:
        raise error

    with backend(method(name, raises)), pytest.raises(error) as caught:
        program()
    assert len(notes(caught.value)) == 1 and OWNER in notes(caught.value)[0]


def test_it_does_not_end_the_process() -> None:
    """Python ends it without a word; only the user's own functions may."""

    def ends(*_: Any) -> Any:
        raise SystemExit(3)

    for kind in (method("compile", ends), launching(ends), method("to_host", ends)):
        with backend(kind), pytest.raises(PluginError, match=rf"{OWNER} raised SystemExit\(3\)"):
            program()
    with pytest.raises(PluginError, match=rf"{OWNER} raised SystemExit\(3\) when it was opened"):
        backend(method("opened", ends)).__enter__()
    with backend(Working), pytest.raises(SystemExit) as caught:
        np.asarray(polyax.jit(lambda x: polyax.pure_callback(ends, x, x))(X))
    assert not notes(caught.value)


def test_what_fails_later_says_whose_it_is_and_who_asked_for_it() -> None:
    def launch(right: Any, buffers: Any, queue: Any) -> Any:
        late = HostBuffer(np.empty(0))
        late.task = queue.run(fails, buffers, 10**9)
        return [late], None

    with backend(launching(launch)):
        y = polyax.jit(lambda x: jnp.sin(x) + 1)(X)
        for wait in (lambda: np.asarray(y), y.block_until_ready, lambda: polyax.block_until_ready([y])):
            with pytest.raises(Failure, match="on fire") as caught:
                wait()
            (note,) = notes(caught.value)
            assert f"In {OWNER}, while program '<lambda>' was run on broken:0: asked for at {__file__}" in note


def test_the_users_own_errors_are_nobody_elses() -> None:
    def callback(x: Any) -> Any:
        raise Failure("of the user")

    with polyax.default_device(polyax.devices("reference")[0]), pytest.raises(JaxRuntimeError, match="user") as caught:
        ask = lambda x: polyax.pure_callback(callback, polyax.ShapeDtypeStruct(X.shape, X.dtype), x)
        polyax.jit(ask)(X).block_until_ready()
    assert not notes(caught.value)
    assert any("in the callback" in n for n in caught.value.__notes__)


def reporting(report: Callable[..., Any]) -> type[Any]:
    class Broken(Working):
        def compile(self, jaxpr: Any, options: Any) -> Any:
            made = super().compile(jaxpr, options)
            made.report = report  # type: ignore[method-assign]
            return made

    return Broken


@pytest.mark.parametrize("report, text", [(fails, "the device is on fire"), (lambda: None, "gave None, not a Report")])
def test_who_asks_for_a_report_is_not_to_blame_for_it(report: Any, text: str) -> None:
    heard: list[Any] = []

    def polyax_compiled(event: Any) -> None:
        heard.append(event.name)
        event.report()

    listener = plugin(polyax_compiled=polyax_compiled)
    with backend(reporting(report)), registered(listener, "any.listener") as record:
        message = f"'any.listener' .* couldn't go on calling polyax_compiled, for an error of {OWNER}: .*{text}"
        with pytest.warns(UserWarning, match=message):
            np.testing.assert_allclose(program(), np.sin(X) + 1, rtol=1e-6)
        assert record.status == "loaded" and heard
        with pytest.raises((Failure, PluginError), match=text):
            polyax.explain(lambda x: jnp.sin(x) * 2)(X)


def test_one_that_works_says_nothing() -> None:
    with backend(Working), warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(program(), np.sin(X) + 1, rtol=1e-6)
