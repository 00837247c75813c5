"""Operands of products that native functions can't step through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import assert_same, compiled, launched, on_reference, planned, traced

from polyax.ir.primitive import Primitive
from polyax.ops import basis, contract
from polyax.ops.contract import dot_general_p
from polyax.runtime.contract.hooks import Offer
from polyax_kernels.ir.products import grouped, sides, stored
from polyax_kernels.lower.fallback import on_host
from polyax_kernels.plan.plan import CallStep, KernelStep
from support.offers import offered

RNG = np.random.default_rng(3)
NONE = ((), ())


def native(args: Any, outs: Any, params: Any) -> Any:
    """A library that steps through matrices by one number each."""
    found = grouped(*sides(args, params))
    if found is None:
        return None
    _, (left, _), (right, _) = found
    both = stored(left, left=True), stored(right, left=False)
    return None if None in both else both


class NativeProducts(NumpyKernelBackend):
    """Products are library calls here, some of them native."""

    def lowerings(self) -> Mapping[Primitive, Sequence[Offer]]:
        return offered({dot_general_p: replace(on_host(dot_general_p), native=native)})


def operand(*shape: int, dtype: str = "f4") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


CASES = {
    "left": ((4, 5, 3), (5, 6), ((1,), (0,)), NONE, 1),
    "right": ((7, 5), (4, 5, 3), ((1,), (1,)), NONE, 1),
    "both": ((4, 5, 3), (2, 5, 6), ((1,), (1,)), NONE, 2),
    "terms in another order": ((3, 7, 5), (7, 3, 6), ((0, 1), (1, 0)), NONE, 1),
    "batch in the middle": ((4, 3, 5, 2), (2, 6, 3, 5), ((3, 2), (0, 3)), ((1,), (2,)), 2),
    "none": ((4, 5), (5, 6), ((1,), (0,)), NONE, 0),
    "nothing": ((4, 0, 3), (0, 6), ((1,), (0,)), NONE, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_kernels_copy_them(name: str) -> None:
    left, right, contracted, batch, copies = CASES[name]
    fun, args = lambda x, y: contract.dot_general(x, y, (contracted, batch)), (operand(*left), operand(*right))
    backend = NativeProducts()
    closed = traced(fun, args)
    *before, call = planned(backend, closed).steps
    assert [type(s) for s in before] == [KernelStep] * copies
    assert isinstance(call, CallStep)
    assert copies == 0 or native(call.arg_avals, call.out_avals, call.params) is not None
    assert_same(launched(backend, compiled(backend, closed), closed, args), on_reference(fun, args))


def test_what_makes_an_operand_is_part_of_its_copy() -> None:
    fun = lambda x, y: contract.dot_general(basis.mul(x, x), y, (((1,), (0,)), NONE))
    args = operand(4, 5, 3), operand(5, 6)
    assert [type(s) for s in planned(NativeProducts(), traced(fun, args)).steps] == [KernelStep, CallStep]
