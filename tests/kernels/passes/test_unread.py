"""Results of library calls that nobody reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import compiled, launched, on_reference, traced

from polyax import lax
from polyax.ir.primitive import Primitive
from polyax.ops.spectral import eigh_p
from polyax.runtime.contract.hooks import Offer
from polyax_kernels.lower.lowering import Call
from polyax_kernels.plan.plan import CallStep
from support.offers import offered

X = np.diag(np.arange(5.0, dtype="f4")) + np.float32(1)


def both(ctx: Any, outs: Any, args: Any, **params: Any) -> None:
    outs[1][...], outs[0][...] = np.linalg.eigh(args[0])


def values(ctx: Any, outs: Any, args: Any, **params: Any) -> None:
    outs[0][...] = np.linalg.eigvalsh(args[0])


class Halving(NumpyKernelBackend):
    """It has eigenvalues without eigenvectors, but not the other way round."""

    def lowerings(self) -> Mapping[Primitive, Sequence[Offer]]:
        some = lambda read, params: Call(values) if read == (False, True) else None
        return offered({eigh_p: Call(both, some=some)})


def run(fun: Any) -> tuple[list[CallStep], list[np.ndarray]]:
    """The calls of the program, and what it gives."""
    backend, closed = Halving(), traced(fun, [X])
    executable = compiled(backend, closed)
    calls = [step for step in executable.plan.steps if isinstance(step, CallStep)]
    return calls, launched(backend, executable, closed, [X])


@pytest.mark.parametrize(
    ("fun", "results"),
    [
        (lambda x: lax.linalg.eigh(x)[1], 1),
        (lambda x: lax.sin(lax.linalg.eigh(x)[1]), 1),
        (lambda x: lax.linalg.eigh(x)[0], 2),
        (lambda x: list(lax.linalg.eigh(x)), 2),
        (lambda x: lax.linalg.eigh(x[0] * x)[1][-1], 1),
    ],
)
def test_what_is_not_read_is_not_computed(fun: Any, results: int) -> None:
    (step,), found = run(fun)
    assert len(step.outs) == results and (step.lowering.run is values) == (results == 1)
    for x, y in zip(found, on_reference(fun, [X]), strict=True):
        np.testing.assert_allclose(np.abs(x), np.abs(y), rtol=1e-5, atol=1e-5)
