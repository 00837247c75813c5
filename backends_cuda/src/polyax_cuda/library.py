"""What NVIDIA's libraries do better than loops: the lowerings of this backend. Knows no kernels.

Functions get CuPy arrays that lie where the plan wants them. NumPy's functions, given these, run CuPy's of the same
name, which call cuSOLVER, cuFFT and Thrust: so some rules of the reference backend serve here as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polyax.backend import Primitive, ShapedArray
from polyax.ops import contract, conv, fft, qr, solve, sort, spectral
from polyax.reference import rules_conv, rules_linalg, rules_order
from polyax_cuda import convolution, linalg, nccl, products
from polyax_cuda.runtime import array
from polyax_kernels.api.gpu import arrays, lowerings, top_k
from polyax_kernels.api.lowerings import Call, Lowering, why_missing


def _why_no_fourier(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    if 0 in avals[0].shape or 0 in params["fft_lengths"]:
        return "cuFFT takes no empty arrays"
    return why_missing("cupy.cuda.cufft", "cuFFT", "nvidia-cufft-cu12")


LOWERINGS: dict[Primitive, Lowering] = {
    contract.dot_general_p: Call(None, products.why_not, operands="device", prepare=products.prepare),
    conv.conv_general_dilated_p: Call(None, convolution.why_not, operands="device", prepare=convolution.prepare),
    fft.fft_p: arrays.call(rules_conv.fft_, array, _why_no_fourier),
    sort.sort_p: arrays.call(rules_order.sort_, array, arrays.why_no_sort),
    sort.top_k_p: top_k.BY_SORT,
    solve.cholesky_p: arrays.call(linalg.cholesky, array, linalg.why_not),
    solve.triangular_solve_p: arrays.call(linalg.triangular_solve, array, linalg.why_not),
    solve.lu_p: Call(linalg.lu, linalg.why_not, operands="device"),
    qr.qr_p: arrays.call(rules_linalg.qr, array, linalg.why_not),
    spectral.eigh_p: arrays.call(rules_linalg.eigh, array, linalg.why_not),
    spectral.svd_p: arrays.call(rules_linalg.svd, array, linalg.why_not),
    **lowerings.lowerings(nccl.NCCL),
}
