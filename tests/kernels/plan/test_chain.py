"""Chains of plans: one plan of the same steps, whatever its values are given to."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import assert_same, planned, traced

import polyax.numpy as jnp
from polyax import lax
from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive
from polyax.ops import basis, reduce, shape
from polyax.runtime.contract.backend import CompileOptions
from polyax_kernels.plan.chain import chained, why_not_chained
from polyax_kernels.plan.journal import Journal
from polyax_kernels.plan.plan import Plan

X = np.arange(12, dtype="f4").reshape(3, 4)
ROW = np.full((1, 4), 7, "f4")
TABLE = np.arange(4, dtype="f4")[None] ** 2


def _run(backend: NumpyKernelBackend, plan: Plan, args: list[np.ndarray]) -> list[np.ndarray]:
    device = backend.devices()[0]
    executable = backend.compile_plan(plan, CompileOptions(device), Journal())
    outs, _ = executable.launch([backend.to_device(x, device) for x in args], device.queue)
    return [backend.to_host(b, a) for b, a in zip(outs, plan.results, strict=True)]


def test_chain_runs_the_steps_of_all() -> None:
    """Values are given to several, in another order, and what lies between is wanted as well; some plans have an arena
    and literals of their own, and one gives its input back."""
    backend = NumpyKernelBackend(fused=False)
    twice = planned(backend, traced(lambda x, y: [basis.sub(basis.mul(x, y), y), y], [X, ROW]))
    scaled = Primitive("test_scaled")
    scaled.abstract_eval, scaled.decompose = (lambda x: [x]), (lambda x: [basis.mul(x, TABLE)])
    sums = lambda y, x: reduce.reduce_sum(scaled.bind1(basis.mul(x, y)), (0,))
    total = planned(backend, traced(sums, [ROW, X]))
    assert total.literals and (total.arena_bytes or twice.arena_bytes)
    flat = planned(backend, traced(lambda x: shape.reshape(x, (12,)), [X]))
    inputs = [ShapedArray(ROW.shape, ROW.dtype), ShapedArray(X.shape, X.dtype)]
    plan = chained([(twice, (1, 0)), (total, (3, 2)), (flat, (2,))], inputs, [4, 5, 2, 3])
    assert len(plan.steps) == sum(len(p.steps) for p in (twice, total, flat))
    first = X * ROW - ROW
    assert_same(_run(backend, plan, [ROW, X]), [(first * ROW * TABLE).sum(0), first.ravel(), first, ROW])


def test_kernels_of_a_chain_are_those_of_its_plans() -> None:
    backend = NumpyKernelBackend()
    square = planned(backend, traced(lambda x: basis.mul(x, x), [X]))
    before = _run(backend, square, [X])
    made = backend.compilations
    plan = chained([(square, (0,)), (square, (1,))], [ShapedArray(X.shape, X.dtype)], [2])
    assert_same(_run(backend, plan, [X]), [before[0] ** 2])
    assert backend.compilations == made


@pytest.mark.parametrize(
    ("program", "donated", "reason"),
    [
        (lambda x: basis.mul(x, x), (True,), "writes to its inputs"),
        (lambda x: lax.fori_loop(0, 3, lambda _, y: jnp.sin(y), x), (False,), "holds plans"),
        (lambda x: basis.mul(x, x), (False,), None),
    ],
)
def test_what_cannot_be_chained(program, donated, reason) -> None:
    why = why_not_chained(planned(NumpyKernelBackend(), traced(program, [X]), donated))
    assert why is None if reason is None else reason in str(why)
