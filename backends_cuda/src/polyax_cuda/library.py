"""What NVIDIA's libraries do better than loops: the lowerings of this backend.

Functions get CuPy arrays that lie where the plan wants them. Knows no kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cupy
import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive
from polyax.ops import contract, conv, fft, solve, sort, spectral
from polyax.ops.fft import FftType
from polyax_cuda import convolution, linalg, products
from polyax_cuda.views import arrays, why_missing
from polyax_kernels.lowering import Call, CallContext, Lowering, WhyNot


def fourier(outs: Sequence[Any], args: Sequence[Any], *, fft_type: FftType, fft_lengths: Sequence[int]) -> None:
    """cuFFT, over the last axes."""
    transform = {
        FftType.FFT: cupy.fft.fftn,
        FftType.IFFT: cupy.fft.ifftn,
        FftType.RFFT: cupy.fft.rfftn,
        FftType.IRFFT: cupy.fft.irfftn,
    }[fft_type]
    outs[0][...] = transform(args[0], tuple(fft_lengths), tuple(range(-len(fft_lengths), 0)))


def sorted_by(outs: Sequence[Any], args: Sequence[Any], *, dimension: int, num_keys: int, **_: Any) -> None:
    """Thrust's sorts are stable and leave NaN last: sorting by the last key first sorts by all of them."""
    if len(args) == 1:
        outs[0][...] = cupy.sort(args[0], dimension, kind="stable")
        return
    order = cupy.argsort(args[num_keys - 1], dimension, kind="stable")
    for key in reversed(args[: num_keys - 1]):
        next_order = cupy.argsort(cupy.take_along_axis(key, order, dimension), dimension, kind="stable")
        order = cupy.take_along_axis(order, next_order, dimension)
    for out, x in zip(outs, args, strict=True):
        out[...] = cupy.take_along_axis(x, order, dimension)


def largest(outs: Sequence[Any], args: Sequence[Any], *, k: int, axis: int) -> None:
    """The reverse of a stable sort of the reversed array, so that of equals the first comes first."""
    x = args[0]
    backwards = cupy.argsort(cupy.flip(x, axis), axis, kind="stable")
    order = cupy.take(x.shape[axis] - 1 - cupy.flip(backwards, axis), cupy.arange(k), axis)
    outs[0][...] = cupy.take_along_axis(x, order, axis)
    outs[1][...] = order


def on_arrays(function: Callable[..., None], why_not: WhyNot) -> Call:
    """The call of a function of CuPy arrays."""

    def run(ctx: CallContext, outs: Sequence[Any], args: Sequence[Any], **params: Any) -> None:
        with ctx.runtime.working():
            function(arrays(outs), arrays(args), **params)

    return Call(run, why_not)


def _why_no_fourier(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    if 0 in avals[0].shape or 0 in params["fft_lengths"]:
        return "cuFFT takes no empty arrays"
    return why_missing("cupy.cuda.cufft", "cuFFT", "nvidia-cufft-cu12")


def _why_no_sort(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    names = {a.dtype.name for a in avals}
    if "bfloat16" in names or any(np.dtype(n).kind == "c" for n in names):
        return f"Thrust doesn't sort {' and '.join(sorted(names))}"
    return "Thrust sorts no empty arrays" if any(0 in a.shape or not a.shape for a in avals) else None


LOWERINGS: dict[Primitive, Lowering] = {
    contract.dot_general_p: Call(products.run, products.why_not),
    conv.conv_general_dilated_p: Call(convolution.run, convolution.why_not),
    fft.fft_p: on_arrays(fourier, _why_no_fourier),
    sort.sort_p: on_arrays(sorted_by, _why_no_sort),
    sort.top_k_p: on_arrays(largest, _why_no_sort),
    solve.cholesky_p: on_arrays(linalg.cholesky, linalg.why_not),
    solve.triangular_solve_p: on_arrays(linalg.triangular_solve, linalg.why_not),
    solve.lu_p: Call(linalg.lu, linalg.why_not),
    spectral.qr_p: on_arrays(linalg.qr, linalg.why_not),
    spectral.eigh_p: on_arrays(linalg.eigh, linalg.why_not),
    spectral.svd_p: on_arrays(linalg.svd, linalg.why_not),
}
