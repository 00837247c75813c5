"""Mistakes that authors make in the projects that ``new-backend`` writes.

Each is told with plugin, place and remedy, or is found by a comparison; none ends in a number that is wrong in silence.
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("polyax_conformance")

from plugins.faults.broken import registered
from plugins.faults.mutants import blamed, told

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.backend import BackendSpec
from polyax_conformance.authoring import BACKENDS, new_backend

X = np.arange(6, dtype=np.float32).reshape(2, 3)
REMEDY = r"(?i)remedy|update or uninstall|give its class an implementation|give one that|The program:"
"""What texts end in; a compiler that refuses a program shows it."""


@pytest.fixture(scope="module", autouse=True)
def projects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("projects")
    sources = [str(new_backend(f"author_{kind}", kind, folder) / "src") for kind in BACKENDS]
    sys.path[:0] = sources
    yield
    sys.path[:] = [place for place in sys.path if place not in sources]


@dataclass(frozen=True)
class Mistake:
    """``make(module, monkeypatch)`` makes it in a module of the project."""

    kind: str
    what: str
    module: str
    make: Callable[[Any, pytest.MonkeyPatch], None]
    told: str
    debug: bool = False
    """Whether only ``POLYAX_DEBUG_BACKEND`` finds it."""


def use(device: polyax.Device) -> list[np.ndarray]:
    """A user's program, and what comes of it."""
    x, seen = polyax.device_put(X, device), list[np.ndarray]()
    two = polyax.jit(lambda x: (jnp.sin(x) + 1, x.astype(int).sum()))
    tell = polyax.jit(lambda x: (polyax.debug.callback(lambda x: seen.append(np.array(x)), x), x - 1)[1])
    loop = polyax.jit(lambda x: lax.fori_loop(0, 3, lambda i, y: jnp.sort(y * 2 - i, axis=1), x))
    long = polyax.device_put(np.arange(20, dtype=np.float32), device)
    got = [*two(x), x @ x.T, loop(x), jnp.cumsum(x, 1), tell(x), long.sum()]
    polyax.effects_barrier()
    device.memory_stats()
    assert two.lower(x).compile().as_text() is not None
    return [*map(np.asarray, got), *seen]


def give(name: str, answer: Any, cls: str = "") -> Callable[[Any, pytest.MonkeyPatch], None]:
    """A function that answers otherwise; ``cls``: a method, of a class of which only the end of the name is given."""

    def make(module: ModuleType, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(owner(module, cls), name, answer)

    return make


def owner(module: ModuleType, cls: str) -> Any:
    own = (v for v in vars(module).values() if isinstance(v, type) and v.__module__ == module.__name__)
    return next(v for v in own if v.__name__.endswith(cls)) if cls else module


def nothing(*_: Any, **__: Any) -> None:
    """A function whose author forgot ``return``."""


def spec(**fields: Any) -> Callable[[Any, pytest.MonkeyPatch], None]:
    def make(module: Any, patch: pytest.MonkeyPatch) -> None:
        (right,) = module.polyax_backends()
        hook = polyax.hookimpl(
            lambda: [BackendSpec(right.name, **{"probe": right.probe, "open": right.open, **fields})]
        )
        patch.setattr(module, "polyax_backends", hook)

    return make


def limits(made: Any) -> Callable[[Any, pytest.MonkeyPatch], None]:
    """Those that ``runtime.py`` makes."""
    return lambda module, patch: patch.setattr(module, "Limits", lambda **given: made)


def half(module: Any, patch: pytest.MonkeyPatch) -> None:
    """Only the first half of each array reaches the device."""

    def write(self: Any, target: np.ndarray, offset: int, host: np.ndarray) -> None:
        target[offset : offset + host.nbytes // 2] = host.reshape(-1).view(np.uint8)[: host.nbytes // 2]
        target[offset + host.nbytes // 2 : offset + host.nbytes] = 0

    patch.setattr(owner(module, "Runtime"), "write", write)


def unordered(name: str) -> Callable[[Any, pytest.MonkeyPatch], None]:
    """A rule with its operands the wrong way around."""

    def make(module: Any, patch: pytest.MonkeyPatch) -> None:
        right = module.RULES[name]
        patch.setitem(module.RULES, name, lambda eqn, x, y: right(eqn, y, x))

    return make


def flat(module: Any, patch: pytest.MonkeyPatch) -> None:
    """Results lose their shape on the way back."""
    right = module.session
    patch.setattr(module, "session", lambda jaxpr: lambda arrays: [x.reshape(-1) for x in right(jaxpr)(arrays)])


def unruled(module: Any, patch: pytest.MonkeyPatch) -> None:
    """It claims what it has no rule for."""
    patch.setattr(module, "why_not", nothing)


def swapped(module: Any, patch: pytest.MonkeyPatch) -> None:
    """Sines are cosines."""
    right = owner(module, "Emitter").op
    change = lambda self, name, dtype, *args: right(self, "cos" if name == "sin" else name, dtype, *args)
    patch.setattr(owner(module, "Emitter"), "op", change)


HOST, GPU, GRAPH = "host", "gpu", "graph"
COMPILED = (
    r"while program '<lambda>' was compiled for author_\w+:0: kernel 'sin_add'; primitives sin, add; asked for at "
)

MISTAKES = [
    # any of them
    Mistake(
        HOST, "a spec without a probe", "plugin", spec(probe=None), "probe of the BackendSpec .* None, .* lambda: None"
    ),
    Mistake(
        GPU, "a spec without open", "plugin", spec(open=None), "open of the BackendSpec .* None, .* such as its class"
    ),
    Mistake(GRAPH, "a backend for a spec", "plugin", spec(open=object()), "open of the BackendSpec .*object"),
    Mistake(
        GRAPH,
        "why_not that is a number",
        "plugin",
        spec(probe=lambda: 3),
        "probe of the BackendSpec 'author_graph' gave 3, not",
    ),
    # kernels on the host
    Mistake(
        HOST, "limits that are a dict", "backend", give("limits", {}, "Backend"), r"Backend.limits is \{\}, not Limits"
    ),
    Mistake(
        HOST, "fusers as a text", "backend", give("fusers", "merger", "Backend"), "fusers is 'merger', not a tuple"
    ),
    Mistake(
        HOST, "no library", "backend", give("library", None, "Backend"), "library is None, not a set of primitives"
    ),
    Mistake(
        HOST,
        "operands misspelt",
        "backend",
        give("operands", "gpu", "Backend"),
        "operands is 'gpu', not one of host, device",
    ),
    Mistake(
        HOST,
        "no limits of a device",
        "backend",
        give("limits_of", nothing, "Backend"),
        "limits_of gave None, not Limits",
    ),
    Mistake(
        HOST,
        "no lowerings",
        "backend",
        give("family_lowerings", nothing, "Backend"),
        "family_lowerings gave None, not a",
    ),
    Mistake(HOST, "no source", "backend", give("source", nothing, "Backend"), COMPILED),
    Mistake(HOST, "no function", "backend", give("load", nothing), "compile_function gave None(?s:.*)" + COMPILED),
    Mistake(
        HOST,
        "an operation returns nothing",
        "emitter",
        give("op", nothing, "Emitter"),
        "Emitter.op gave None(?s:.*)" + COMPILED,
    ),
    Mistake(
        HOST,
        "a load returns nothing",
        "emitter",
        give("load", nothing, "Emitter"),
        "Emitter.load gave None(?s:.*)" + COMPILED,
    ),
    Mistake(
        HOST, "a constant returns nothing", "emitter", give("const", nothing, "Emitter"), "Emitter.const gave None"
    ),
    Mistake(HOST, "a cast returns nothing", "emitter", give("cast", nothing, "Emitter"), "Emitter.cast gave None"),
    Mistake(
        HOST,
        "a fold returns nothing",
        "emitter",
        give("fold", nothing, "Emitter"),
        "Emitter.fold gave None, not the 1 values",
    ),
    Mistake(
        HOST,
        "it supports nothing",
        "emitter",
        give("supports", nothing, "Emitter"),
        "this emitter lacks it; give its class",
    ),
    Mistake(
        HOST,
        "a store that writes nothing",
        "emitter",
        give("store", nothing, "Emitter"),
        "in kernel 'sin_add'",
        debug=True,
    ),
    Mistake(HOST, "cosines for sines", "emitter", swapped, "in kernel 'sin_add', which computes sin add", debug=True),
    # devices
    Mistake(GPU, "limits that are none", "runtime", limits(None), "Runtime.limits is None, not its Limits"),
    Mistake(
        GPU,
        "an emitter that is made",
        "backend",
        give("emitter", 3, "Backend"),
        "emitter is 3, not a class derived from GpuEmitter",
    ),
    Mistake(
        GPU,
        "no memory",
        "runtime",
        give("allocate", nothing, "Runtime"),
        r"allocate gave None for 24 bytes(?s:.*)copied to author_gpu:0",
    ),
    Mistake(
        GPU,
        "no mark",
        "runtime",
        give("mark", nothing, "Runtime"),
        "mark gave None, not a Mark(?s:.*)program '<lambda>' was run on",
    ),
    Mistake(
        GPU, "no statistics", "runtime", give("memory_stats", nothing, "Runtime"), "memory_stats gave None, not a dict"
    ),
    Mistake(
        GPU,
        "no text",
        "backend",
        give("write", nothing, "Backend"),
        "write gave None, not the text of a program(?s:.*)" + COMPILED,
    ),
    Mistake(
        GPU,
        "no argument",
        "emitter",
        give("argument", nothing, "Emitter"),
        "argument gave None, not a pair(?s:.*)" + COMPILED,
    ),
    Mistake(
        GPU,
        "words that are no C",
        "emitter",
        give("kernel_words", "kernel void", "Emitter"),
        "rejected a kernel(?s:.*)" + COMPILED,
    ),
    Mistake(GPU, "half an array is written", "runtime", half, "otherwise than the reference", debug=True),
    Mistake(
        GPU, "nothing is launched", "runtime", give("launch", nothing, "Runtime"), "in kernel 'sin_add'", debug=True
    ),
    # engines
    Mistake(
        GRAPH,
        "a claim that is a number",
        "engine",
        give("why_not", lambda name, dtypes: 3),
        "why_not of the backend gave 3, not a reason or None(?s:.*)primitives sin; asked for at",
    ),
    Mistake(
        GRAPH,
        "it claims all",
        "engine",
        unruled,
        "KeyError: 'convert_element_type'(?s:.*)primitives convert_element_type; asked for at",
    ),
    Mistake(
        GRAPH,
        "no session",
        "engine",
        give("session", nothing),
        "not callable(?s:.*)program '<lambda>' was run on author_graph:0",
    ),
    Mistake(
        GRAPH,
        "a run that returns nothing",
        "backend",
        give("run", nothing, "Executable"),
        "gave None, not a list of . arrays",
    ),
    Mistake(
        GRAPH,
        "a program that isn't written",
        "engine",
        give("source", nothing),
        "unpack(?s:.*)was compiled for author_graph:0",
    ),
    Mistake(
        GRAPH,
        "results without a shape",
        "engine",
        flat,
        r"to_host gave float32\[6\] for an array of type float32\[2,3\]",
    ),
    Mistake(
        GRAPH,
        "operands the wrong way around",
        "engine",
        unordered("sub"),
        "which computes sub|equation sub",
        debug=True,
    ),
]


def outcome(mistake: Mistake, patch: pytest.MonkeyPatch) -> str:
    """All that the user reads."""
    name, text = f"author_{mistake.kind}", ""
    mistake.make(importlib.import_module(f"polyax_{name}.{mistake.module}"), patch)
    settings = {"debug_backend": name if mistake.debug else "", "host_fallback": "allow"}
    with warnings.catch_warnings(record=True) as warned, polyax.config.override(**settings):
        warnings.simplefilter("always")
        try:
            with registered(importlib.import_module(f"polyax_{name}.plugin"), name):
                device = polyax.devices(name)[0]
                with polyax.default_device(device):
                    use(device)
        except Exception as e:
            text = told(e)
    return "\n".join([text, *(str(w.message) for w in warned)])


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: f"{m.kind}: {m.what}")
def test_what_an_author_is_told(mistake: Mistake, monkeypatch: pytest.MonkeyPatch) -> None:
    text = outcome(mistake, monkeypatch)
    assert re.search(mistake.told, text), text
    assert f"plugin 'author_{mistake.kind}' of polyax-broken 1.2.3" in text, text
    assert blamed(text) == {f"author_{mistake.kind}"} and re.search(REMEDY, text), text


@pytest.mark.parametrize("kind", BACKENDS)
def test_without_a_mistake_nothing_is_told(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Mistake(kind, "none", "plugin", lambda module, patch: None, "", debug=True)
    assert outcome(right, monkeypatch).strip() == ""
