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
from polyax.reference import rules_conv, rules_linalg, rules_order
from polyax_cuda import convolution, linalg, nccl, products
from polyax_cuda.runtime import array
from polyax_kernels.gpu.collectives import lowerings
from polyax_kernels.gpu.cuda_like import arrays
from polyax_kernels.lower.libraries.toolkits import why_missing
from polyax_kernels.lower.lowering import Call, Lowering, Prepared, WhyNot


def _why_no_fourier(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    if 0 in avals[0].shape or 0 in params["fft_lengths"]:
        return "cuFFT takes no empty arrays"
    return why_missing("cupy.cuda.cufft", "cuFFT", "nvidia-cufft-cu12")


def _on_arrays(function: Callable[..., Any], why_not: WhyNot) -> Call:
    return arrays.call(function, array, why_not)


LOWERINGS: dict[Primitive, Lowering] = {
    contract.dot_general_p: Prepared(products.prepare, products.why_not),
    conv.conv_general_dilated_p: Prepared(convolution.prepare, convolution.why_not),
    fft.fft_p: _on_arrays(rules_conv.fft_, _why_no_fourier),
    sort.sort_p: _on_arrays(rules_order.sort_, arrays.why_no_sort),
    sort.top_k_p: _on_arrays(rules_order.top_k, arrays.why_no_sort),
    solve.cholesky_p: _on_arrays(linalg.cholesky, linalg.why_not),
    solve.triangular_solve_p: _on_arrays(linalg.triangular_solve, linalg.why_not),
    solve.lu_p: Call(linalg.lu, linalg.why_not),
    spectral.qr_p: _on_arrays(rules_linalg.qr, linalg.why_not),
    spectral.eigh_p: _on_arrays(rules_linalg.eigh, linalg.why_not),
    spectral.svd_p: _on_arrays(rules_linalg.svd, linalg.why_not),
    **lowerings.lowerings(nccl.NCCL),
}
