"""The forty-one mistakes that somebody made on purpose who wrote three plugins from the documentation alone: what a
user is told of each.

Each is told by an error, or found by ``POLYAX_CHECKS=1``, ``POLYAX_DEBUG_BACKEND`` or ``POLYAX_LAUNCH_TIMEOUT``.
"""

from __future__ import annotations

import contextlib
import re
import time
import types
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

pytest.importorskip("polyax_hello_c")

from plugins.faults.broken import Working, backend, fuser, giving, launching, lowering, method, plugin, registered
from plugins.faults.mutants import blamed, told

import polyax
import polyax.numpy as jnp
from polyax.backend import HostBuffer
from polyax.lax import sin_p
from polyax_hello_c.backend import HelloCBackend
from polyax_kernels.api.lowerings import Call, Kernels, cast, op

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@dataclass(frozen=True)
class Mistake:
    what: str
    context: Callable[[], AbstractContextManager[Any]]
    """Where it is made."""
    told: str
    """What the user reads, but for whose it is."""
    whose: str = "broken"
    """The plugin, if one is to be named; none, if it does no harm."""
    settings: dict[str, Any] = field(default_factory=dict)
    """With which it is found, if not always."""
    program: Callable[[Any], Any] = lambda x: jnp.cos(jnp.sin(x)) @ x.T
    remedy: bool = False
    """Whether the text ends in what to do; errors of the plugin's own keep their texts."""


def program(mistake: Mistake) -> np.ndarray:
    return np.asarray(polyax.jit(mistake.program)(X))


class Failure(Exception):
    """A plugin's own."""


def fails(*_: Any, **__: Any) -> Any:
    raise Failure("the device is on fire")


def of(kind: type[Any]) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: backend(kind)


def rule(made: Any) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: lowering({sin_p: made})


def fusing(run: Any) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: fuser(run)


def kernels(**methods: Any) -> Callable[[], AbstractContextManager[Any]]:
    """A backend made of kernels with a method replaced; its module is no folder of tests."""
    own = {"__init__": lambda self: HelloCBackend.__init__(self, "broken"), "__module__": HelloCBackend.__module__}
    return of(type("Broken", (HelloCBackend,), own | methods))


def later(right: Any, buffers: Any, queue: Any) -> Any:
    """A launch that returns before it fails."""
    late = HostBuffer(np.empty(0))
    late.task = queue.run(fails, buffers, 10**9)
    return [late], None


def slow(right: Any, buffers: Any, queue: Any) -> Any:
    time.sleep(0.3)
    return right(buffers, queue)


def writing(right: Any, buffers: Any, queue: Any) -> Any:
    made = right(buffers, queue)
    buffers[0].data[...] = 7
    return made


def first(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[], AbstractContextManager[Any]]:
    """A backend that gives something else than the first result."""
    return of(giving(lambda outs: [HostBuffer(change(outs[0].data)), *outs[1:]]))


@contextlib.contextmanager
def listening(hook: Callable[[Any], Any]) -> Any:
    with backend(Working), registered(plugin(polyax_compiled=hook), "any.broken"):
        yield


@contextlib.contextmanager
def unreported() -> Any:
    """A report that fails, and somebody who asks for it."""

    def compile(self: Any, jaxpr: Any, options: Any) -> Any:
        made = Working.compile(self, jaxpr, options)
        made.report = fails  # type: ignore[method-assign]
        return made

    def polyax_compiled(event: Any) -> None:
        event.report()

    with backend(method("compile", compile)), registered(plugin(polyax_compiled=polyax_compiled), "any.asking"):
        yield


def right(out: Any, x: Any, **_: Any) -> Any:
    return op("sin", x.at(out.i))


def declining(avals: Any, params: Any) -> str:
    return "not today"


def doubled(graph: Any, limits: Any) -> Any:
    """The last kernel is another one of the same types."""
    from polyax_kernels.api.fusers import KernelNode, rebuilt
    from polyax_kernels.ir.kernel import map_stages

    change = lambda x: x + x if x.dtype == np.float32 else x
    return graph.with_nodes(
        [
            rebuilt(n, map_stages(n.stages, change), n.primitives) if isinstance(n, KernelNode) and not n.folds else n
            for n in graph.nodes
        ]
    )


def write(ctx: Any, outs: Any, args: Any, **_: Any) -> None:
    args[0][...] = 0


CHECKS, DEBUG, HELLO = {"checks": True}, {"debug_backend": "broken"}, {"debug_backend": "hello_c"}
LATE = {"launch_timeout": 0.05}
THEIRS = "hello_c.broken"
CONTRACT = "breaks the contract of backends on broken:0: "

MISTAKES = [
    # a backend
    Mistake("compile raises", of(method("compile", fails)), "program '<lambda>' was compiled for broken:0"),
    Mistake("launch raises", of(launching(fails)), "program '<lambda>' was run on broken:0"),
    Mistake(
        "to_device raises", of(method("to_device", fails)), r"an array of type float32\[2, 3\] was copied to broken:0"
    ),
    Mistake("to_host raises", of(method("to_host", fails)), r"an array of type float32\[2,2\] was made on broken:0"),
    Mistake("it fails later", of(launching(later)), "program '<lambda>' was run on broken:0: asked for at"),
    Mistake(
        "launch hangs",
        of(launching(slow)),
        "program '<lambda>' on broken:0 .* hasn't ended after 0.05 s",
        settings=LATE,
    ),
    Mistake(
        "launch gives a list", of(launching(lambda r, b, q: r(b, q)[0])), CONTRACT + "launch .* not a pair", remedy=True
    ),
    Mistake("launch gives None", of(launching(lambda *_: None)), CONTRACT + "launch .* gave None", remedy=True),
    Mistake("compile gives None", of(method("compile", lambda *_: None)), CONTRACT + "compile gave None", remedy=True),
    Mistake("no devices", of(method("devices", lambda self: [])), "devices.. of backend 'broken' gave", remedy=True),
    Mistake("devices that are none", of(method("devices", lambda self: [3])), r"gave \[3\]", remedy=True),
    Mistake("another name", lambda: backend(Working, "other"), "opened a backend named 'broken', not its own", "other"),
    Mistake(
        "too few results",
        of(giving(lambda outs: [])),
        CONTRACT + ".* gave 0 results, and the program has 1",
        remedy=True,
    ),
    Mistake("too many results", of(giving(lambda outs: outs * 2)), CONTRACT + ".* gave 2 results", remedy=True),
    Mistake("another shape", first(lambda x: x.reshape(-1)), CONTRACT + r"to_host gave float32\[4\] for", remedy=True),
    Mistake(
        "another dtype", first(lambda x: x.astype("f8")), CONTRACT + r"to_host gave float64\[2, 2\] for", remedy=True
    ),
    Mistake("too small", first(lambda x: x[:1]), CONTRACT + ".* gave 8 bytes for result 0", remedy=True),
    Mistake(
        "an array for a buffer", of(giving(lambda outs: [outs[0].data])), CONTRACT + "(?s:.*)not a Buffer", remedy=True
    ),
    Mistake(
        "integers that it lacks",
        of(method("why_no_dtype", lambda self, d: "no integers" if d == np.int32 else None)),
        r"a result of type int32\[2\] can't live on broken:0: no integers",
        "",
        program=lambda x: jnp.argmax(x, 1),
    ),
    Mistake("a report that fails", unreported, "for an error of plugin 'broken'.*on fire"),
    Mistake(
        "a hook that fails",
        lambda: listening(fails),
        "'any.broken' .* can't be used: Failure",
        "any.broken",
        remedy=True,
    ),
    Mistake("it writes to its inputs", of(launching(writing)), "launch wrote to input 0", settings=DEBUG, remedy=True),
    Mistake("wrong numbers", first(lambda x: x + 1), "otherwise than the reference", settings=DEBUG, remedy=True),
    # kernels
    Mistake(
        "text that is no program", kernels(source=lambda self, kernel: "no C"), "compiled for broken:0: kernel 'sin"
    ),
    Mistake(
        "a kernel that traps",
        kernels(compile_function=lambda self, k: fails),
        "run on broken:0: kernel '.*primitives sin",
    ),
    Mistake(
        "no function",
        kernels(compile_function=lambda self, k: None),
        "compile_function gave None, not a function(?s:.*)kernel 'sin",
    ),
    # lowerings
    Mistake(
        "no lowering",
        rule(types.SimpleNamespace(priority=0, why_not=None)),
        "as lowering of 'sin'; hello_c takes",
        THEIRS,
    ),
    Mistake("a number", rule(Kernels(lambda *_, **__: 3.0)), "build of the lowering gave 3.0", THEIRS, remedy=True),
    Mistake(
        "a wrong dtype",
        rule(Kernels(lambda *a, **_: cast(right(*a), "int32"))),
        "an expression of int32",
        THEIRS,
        remedy=True,
    ),
    Mistake("a rule that raises", rule(Kernels(fails)), "compiled for hello_c:0: primitives sin", THEIRS, remedy=True),
    Mistake(
        "another function",
        rule(Kernels(lambda out, x, **_: op("cos", x.at(out.i)))),
        "by its lowering of sin",
        THEIRS,
        HELLO,
        remedy=True,
    ),
    Mistake("a rule that always declines", rule(Call(fails, why_not=declining, priority=10)), "", ""),
    Mistake(
        "a name for a primitive",
        lambda: lowering({"sin": Kernels(right)}),
        "'sin', which is not a Primitive",
        THEIRS,
        remedy=True,
    ),
    Mistake("a call that raises", rule(Call(fails)), "run on hello_c:0: primitives sin", THEIRS, remedy=True),
    Mistake("a call that writes to operands", rule(Call(write)), "read-only", THEIRS, CHECKS, remedy=True),
    # fusers
    Mistake("a fuser that raises", fusing(fails), "compiled for hello_c:0: fuser 'mine'", THEIRS, remedy=True),
    Mistake(
        "a node that is dropped",
        fusing(lambda g, _: g.with_nodes(g.nodes[:-1])),
        "nobody computes v",
        THEIRS,
        remedy=True,
    ),
    Mistake(
        "another order", fusing(lambda g, _: g.with_nodes(g.nodes[::-1])), "computes later", THEIRS, CHECKS, remedy=True
    ),
    Mistake("other kernels", fusing(doubled), "by its fuser 'mine'", THEIRS, HELLO, remedy=True),
    # settings
    Mistake(
        "a fuser that isn't there",
        lambda: contextlib.nullcontext(),
        "no plugin brings 'merge'.*Did you mean 'merger'",
        "",
        {"fusers": "merge"},
        program=lambda x: jnp.sin(x),
    ),
    Mistake("the same claim twice", lambda: twice(), "plugin 'hello_c.also'", THEIRS),
]


@contextlib.contextmanager
def twice() -> Any:
    def polyax_lowerings(backend: Any) -> Any:
        return {sin_p: Kernels(right)}

    with registered(plugin(polyax_lowerings=polyax_lowerings), "hello_c.also"), lowering({sin_p: Kernels(right)}):
        yield


def outcome(mistake: Mistake, capfd: pytest.CaptureFixture[str]) -> tuple[str, Any]:
    """All that the user reads, and what the program computes."""
    got = None
    with warnings.catch_warnings(record=True) as warned, polyax.config.override(checks=False):
        warnings.simplefilter("always")
        error = ""
        try:
            with polyax.config.override(**mistake.settings), mistake.context():
                got = program(mistake)
        except Exception as e:
            error = told(e)
    return "\n".join([error, *map(str, (w.message for w in warned)), capfd.readouterr().err]), got


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.what)
def test_what_a_user_is_told(mistake: Mistake, capfd: pytest.CaptureFixture[str]) -> None:
    text, got = outcome(mistake, capfd)
    assert re.search(mistake.told, text), text
    if mistake.whose:
        assert f"plugin '{mistake.whose}' of polyax-broken 1.2.3" in text, text
    assert blamed(text) <= {mistake.whose, *MENTIONED.get(mistake.what, ())}, text
    assert not mistake.remedy or re.search("[Rr]emedy|POLYAX_(DISABLE_PLUGINS|FUSERS)|update or uninstall", text), text
    if got is not None and got.dtype == np.float32:
        np.testing.assert_allclose(got, np.cos(np.sin(X)) @ X.T, rtol=1e-5)


MENTIONED = {
    "the same claim twice": {"hello_c.also"},
    "a report that fails": {"any.asking"},
    "a fuser that isn't there": {"any.fusion"},
}
"""Others who have a part in it."""


def test_there_are_forty_one() -> None:
    assert len(MISTAKES) == len({m.what for m in MISTAKES}) == 41
