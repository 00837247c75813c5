"""What backends of each kind decline in ``why_not``: it is made of other primitives, or left to the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("polyax_fusion")

from kernels.numpy_backend import NumpyKernelBackend
from plugins.faults.broken import Working

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.backend import HostArrayBackend, HostArrayExecutable, Literal, Report, decompose, on_host, partition
from polyax.ir.errors import NoLowering, PluginError

X = np.arange(6, dtype=np.float32)


class Engine(HostArrayExecutable):
    """Runs in NumPy what the backend takes, and leaves the rest to the host."""

    def __init__(self, closed: Any, backend: Any) -> None:
        self.whole = decompose(closed, lambda eqn: backend.declines(eqn) is None)
        self.parts = partition(self.whole, backend.declines)
        self.steps = [(p, on_host(p.program, "mine", p.reasons, () if p.reasons else names(p))) for p in self.parts]
        super().__init__(self.run, len(closed.jaxpr.outvars), 0, closed.effects)

    def run(self, arrays: Any) -> Any:
        jaxpr = self.whole.jaxpr
        values = dict(zip((*jaxpr.constvars, *jaxpr.invars), arrays, strict=True))
        for part, run in self.steps:
            values |= zip(part.program.jaxpr.outvars, run([values[v] for v in part.program.jaxpr.invars]), strict=True)
        return [np.asarray(a.val, a.aval.dtype) if isinstance(a, Literal) else values[a] for a in jaxpr.outvars]

    def report(self) -> Report:
        return Report("mine", [])


def names(part: Any) -> set[str]:
    return {e.primitive.name for e in part.program.eqns}


class Whole(HostArrayBackend):
    name = "mine"

    def __init__(self) -> None:
        super().__init__("an engine")

    def compile(self, jaxpr: Any, options: Any) -> Engine:
        return Engine(jaxpr, self)


KINDS = {"interpreter": Working, "kernels": NumpyKernelBackend, "engine": Whole}


def declining(kind: str, why_not: Callable[..., Any]) -> polyax.Device:
    made = type("Declining", (KINDS[kind],), {"why_not": lambda self, *use: why_not(*use)})()
    return made.devices()[0]


def no_windows_of(dtype: Any) -> Callable[..., str | None]:
    def why_not(primitive: Any, avals: Any, outs: Any, params: Any) -> str | None:
        declined = primitive.name == "reduce_window_sum" and outs[0].dtype == dtype and params["window_dimensions"]
        return "it has no windows" if declined else None

    return why_not


def windows(x: Any) -> Any:
    sums = lambda x: lax.reduce_window(x, np.zeros((), x.dtype), lax.add, (2,), (1,), "VALID")
    return lax.fori_loop(0, 2, lambda _, y: y + sums(y).sum(), sums(x) * 2)


@pytest.mark.parametrize("kind", KINDS)
def test_what_it_is_made_of_is_run(kind: str) -> None:
    want = polyax.jit(windows, device=polyax.devices("reference")[0])(X)
    with polyax.default_device(declining(kind, no_windows_of(np.float32))):
        np.testing.assert_allclose(polyax.jit(windows)(X), want, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_of_nothing_else_is_refused_with_the_reason(kind: str) -> None:
    why_not = lambda primitive, *_: "it has no tangent" if primitive is lax.tan_p else None
    with (
        polyax.default_device(declining(kind, why_not)),
        polyax.config.override(host_fallback="error"),
        pytest.raises(NoLowering, match="can't run .*tan.*it has no tangent|tan.* can't run .*it has no tangent"),
    ):
        polyax.jit(lambda x: jnp.sin(lax.tan(x)))(X)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answer", [3, ""])
def test_a_reason_is_a_text(kind: str, answer: Any) -> None:
    with (
        polyax.default_device(declining(kind, lambda *_: answer)),
        pytest.raises(PluginError, match=f"why_not of the backend gave {answer!r}, not a reason or None"),
    ):
        polyax.jit(jnp.sin)(X)
