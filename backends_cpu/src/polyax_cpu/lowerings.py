"""What the cpu backend lowers by itself: products by BLAS, linear algebra by LAPACK, transforms, sorts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive
from polyax.ops.contract import dot_general_p
from polyax.ops.fft import fft_p
from polyax_cpu.convolutions import lowerings as convolutions
from polyax_cpu.libraries import fourier, lapack, products, small, sorting, strips
from polyax_cpu.processors import host
from polyax_kernels.lower import extrema
from polyax_kernels.lower.lowering import Call, CallContext, Lowering
from polyax_kernels.passes.straight import ONE_BY_ONE


def _why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    names = {a.dtype.name for a in avals}
    wanted = params.get("preferred_element_type")
    if len(names) != 1 or not names <= products.LETTERS.keys():
        return f"BLAS has no product of {' and '.join(sorted(names))}"
    if wanted is not None and np.dtype(wanted) != avals[0].dtype:
        return f"BLAS has no product of {avals[0].dtype} in {wanted}"
    return None


FEW = 5_000
"""Scalar operations that take no longer than copying operands does."""
STACKED = 64
"""Products of a stack that may be worth a loop."""


def _tiny(dtype: np.dtype) -> int:
    """Multiplications of each of them that take no longer in a loop than BLAS takes to be called. OpenBLAS copies both
    operands first, but has kernels for small matrices of real numbers where there is AVX-512. Loops over complex128,
    whose parts lie two apart, take LLVM long."""
    if dtype.kind == "c":
        return 512 if dtype.itemsize == 8 else 125
    return 512 if host().vector_bits == 512 else 8192


def _why_no_product(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Small products whose operands BLAS can't read where they lie are kernels, and stacks of small ones, and outer
    products."""
    if (reason := _why_not(avals, params)) is not None:
        return reason
    found = products.describe(avals, params)
    if found is not None and found.batch >= STACKED and found.m * found.n * found.k <= _tiny(avals[0].dtype):
        return f"calling BLAS {found.batch} times would take longer than computing it in a loop"
    if avals[0].dtype.kind == "c":
        return None
    if found is None:
        few = products.operations(avals, params) <= FEW or products.terms(avals, params) < ONE_BY_ONE
        return "copying operands would take longer than computing it in a loop" if few else None
    return "each element is one multiplication, which what is around it can take in" if found.k == 1 else None


def _after_copies(
    _: CallContext, __: Sequence[ShapedArray], args: Sequence[ShapedArray], params: Mapping[str, Any]
) -> Any:
    """For operands that have to be copied first."""
    return products.after_copies(args, params)


def _native(args: Sequence[ShapedArray], _: Sequence[ShapedArray], params: Mapping[str, Any]) -> Any:
    """The address of the native function and the product that it is to compute; None: not without copies."""
    product, dtype = products.describe(args, params), args[0].dtype.name
    if product is None:
        return None
    if strips.fits(product, dtype):
        return strips.function(dtype, product), strips.counted(product)
    return products.function(dtype), product


def _adds(args: Sequence[ShapedArray], params: Mapping[str, Any]) -> Any:
    """The function that adds up the products of several members; None: not without copies."""
    product = products.describe(args, params)
    return None if product is None else products.adding(args[0].dtype.name, product)


def _transforms(
    _: CallContext, outs: Sequence[ShapedArray], args: Sequence[ShapedArray], params: Mapping[str, Any]
) -> Any:
    return fourier.transform(args[0], params["fft_type"].name, params["fft_lengths"])


LOWERINGS: dict[Primitive, Lowering] = {
    dot_general_p: small.InlinedCall(
        why_not=_why_no_product, prepare=_after_copies, native=_native, adds=_adds, inlined=small.product
    ),
    fft_p: Call(prepare=_transforms),
    **convolutions.lowerings(_why_not),
    **extrema.LOWERINGS,
    **lapack.LOWERINGS,
    **sorting.LOWERINGS,
}
