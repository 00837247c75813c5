"""Transposes around products that are library calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import assert_same, compiled, launched, on_reference, planned, traced

from polyax.ir.primitive import Primitive
from polyax.ops import basis, contract, slicing
from polyax.ops.contract import dot_general_p
from polyax.runtime.contract.hooks import Offer
from polyax_kernels.lower.fallback import on_host
from polyax_kernels.plan.plan import CallStep
from support.offers import offered

RNG = np.random.default_rng(3)
A = RNG.standard_normal((3, 4)).astype("f4")
B = RNG.standard_normal((5, 4)).astype("f4")
BATCHED = RNG.standard_normal((2, 3, 4)).astype("f4"), RNG.standard_normal((2, 5, 4)).astype("f4")


class LibraryBackend(NumpyKernelBackend):
    """Products are library calls here."""

    def lowerings(self) -> Mapping[Primitive, Sequence[Offer]]:
        return offered({dot_general_p: on_host(dot_general_p)})


def t(x, *permutation):
    return basis.transpose(x, permutation or (1, 0))


def product(a, b, contracting, batch=((), ())):
    return contract.dot_general(a, b, (contracting, batch))


CASES = {
    "right operand": (lambda a, b: contract.dot(a, t(b)), (A, B)),
    "both operands": (lambda a, b: product(t(a), t(b), ((0,), (0,))), (A, B)),
    "result": (lambda a, b: t(product(a, b, ((1,), (1,)))), (A, B)),
    "operands and result": (lambda a, b: t(product(t(a), b, ((0,), (1,)))), (A, B)),
    "batched": (
        lambda a, b: product(t(a, 1, 0, 2), t(b, 2, 0, 1), ((2,), (0,)), ((1,), (1,))),
        BATCHED,
    ),
    "batched result": (lambda a, b: t(product(a, b, ((2,), (2,)), ((0,), (0,))), 0, 2, 1), BATCHED),
}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_moved(name: str) -> None:
    fun, args = CASES[name]
    backend = LibraryBackend()
    closed = traced(fun, args)
    assert [type(s) for s in planned(backend, closed).steps] == [CallStep]
    assert_same(launched(backend, compiled(backend, closed), closed, args), on_reference(fun, args))


def test_results_that_are_also_read_as_they_are() -> None:
    def fun(a, b):
        c = product(a, b, ((1,), (1,)))
        return [t(c), c]

    backend = LibraryBackend()
    closed = traced(fun, (A, B))
    assert_same(launched(backend, compiled(backend, closed), closed, (A, B)), on_reference(fun, (A, B)))


def test_free_dimensions_out_of_order_stay_transposed() -> None:
    def fun(a, b):
        return product(t(a, 2, 1, 0), b, ((0,), (2,)))

    backend = LibraryBackend()
    closed = traced(fun, BATCHED)
    assert len(planned(backend, closed).steps) == 2
    assert_same(launched(backend, compiled(backend, closed), closed, BATCHED), on_reference(fun, BATCHED))


def test_slices_from_the_beginning_are_no_transposes() -> None:
    def fun(a, b):
        part = lambda x: slicing.slice(x, (0, 0), (3, 2))
        nothing = [slicing.slice(x, (0, 0), (len(x.aval.shape), 0)) for x in (a, b)]
        return [product(part(a), t(part(b)), ((1,), (0,))), product(*nothing, ((1,), (1,)))]

    backend = LibraryBackend()
    closed = traced(fun, (A, B))
    assert_same(launched(backend, compiled(backend, closed), closed, (A, B)), on_reference(fun, (A, B)))


def test_what_libraries_would_have_to_copy_stays_transposed() -> None:
    """Heads of attention: a library steps through one batch index, and the free one stands between two dimensions."""
    a, b = (RNG.standard_normal((2, 3, 5, 4)).astype("f4") for _ in range(2))

    def fun(a, b):
        return product(t(a, 0, 2, 1, 3), t(b, 0, 2, 1, 3), ((3,), (3,)), ((0, 1), (0, 1)))

    backend = LibraryBackend()
    closed = traced(fun, (a, b))
    plan = planned(backend, closed)
    (call,) = [s for s in plan.steps if isinstance(s, CallStep)]
    assert call.params["dimension_numbers"] == (((3,), (3,)), ((0, 1), (0, 1)))
    assert_same(launched(backend, compiled(backend, closed), closed, (a, b)), on_reference(fun, (a, b)))
