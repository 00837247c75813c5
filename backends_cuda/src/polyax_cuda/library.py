"""What NVIDIA's libraries do better than loops: the lowerings of this backend. Knows no kernels.

Functions get CuPy arrays that lie where the plan wants them. NumPy's functions, given these, run CuPy's of the same
name, which call cuSOLVER, cuFFT and Thrust: so some rules of the reference backend serve here as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive
from polyax.ops import contract, conv, fft, solve, sort, spectral
from polyax.runtime.reference import rules_conv, rules_linalg, rules_order
from polyax_cuda import convolution, linalg, products
from polyax_cuda.runtime import array
from polyax_kernels.lowering import Call, CallContext, Lowering, Prepared, WhyNot
from polyax_kernels.toolkits import why_missing


def on_arrays(function: Callable[..., Any], why_not: WhyNot) -> Call:
    """The call of a function that takes and returns CuPy arrays."""

    def run(ctx: CallContext, outs: Sequence[Any], args: Sequence[Any], **params: Any) -> None:
        with ctx.runtime.working():
            found = function(*map(array, args), **params)
            for out, result in zip(outs, found if isinstance(found, (list, tuple)) else [found], strict=True):
                array(out)[...] = result

    return Call(run, why_not)


def _why_no_fourier(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    if 0 in avals[0].shape or 0 in params["fft_lengths"]:
        return "cuFFT takes no empty arrays"
    return why_missing("cupy.cuda.cufft", "cuFFT", "nvidia-cufft-cu12")


def _why_no_sort(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    odd = sorted({a.dtype.name for a in avals if a.dtype.kind == "c" or a.dtype.name == "bfloat16"})
    return f"Thrust doesn't sort {odd or 'empty arrays'}" if odd or any(0 in a.shape for a in avals) else None


LOWERINGS: dict[Primitive, Lowering] = {
    contract.dot_general_p: Prepared(products.prepare, products.why_not),
    conv.conv_general_dilated_p: Prepared(convolution.prepare, convolution.why_not),
    fft.fft_p: on_arrays(rules_conv.fft_, _why_no_fourier),
    sort.sort_p: on_arrays(rules_order.sort_, _why_no_sort),
    sort.top_k_p: on_arrays(rules_order.top_k, _why_no_sort),
    solve.cholesky_p: on_arrays(linalg.cholesky, linalg.why_not),
    solve.triangular_solve_p: on_arrays(linalg.triangular_solve, linalg.why_not),
    solve.lu_p: Call(linalg.lu, linalg.why_not),
    spectral.qr_p: on_arrays(rules_linalg.qr, linalg.why_not),
    spectral.eigh_p: on_arrays(rules_linalg.eigh, linalg.why_not),
    spectral.svd_p: on_arrays(rules_linalg.svd, linalg.why_not),
}
