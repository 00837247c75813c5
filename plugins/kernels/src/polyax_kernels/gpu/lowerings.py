"""The lowerings that GPU backends share: what no kernel of loops does well, and no library need be there for."""

from __future__ import annotations

from polyax.ops.contract import dot_general_p
from polyax.ops.conv import conv_general_dilated_p
from polyax.ops.scatter import scatter_p
from polyax.ops.sort import top_k_p
from polyax_kernels.gpu import cumulative as in_groups
from polyax_kernels.gpu import scatter, top_k
from polyax_kernels.gpu.products import convolve, multiply
from polyax_kernels.lower import cumulative
from polyax_kernels.lower.lowering import Family

ALONE = cumulative.lowerings(in_groups.LONG, in_groups.ROWS)
"""Of running values, where groups of threads don't share them."""
LOWERINGS: Family = {
    dot_general_p: multiply.PRODUCT,
    conv_general_dilated_p: convolve.CONVOLUTION,
    scatter_p: scatter.LastWins(scatter.program),
    top_k_p: top_k.ONE_BY_ONE,
    **ALONE,
    **{p: (x, ALONE[p]) for p, x in in_groups.LOWERINGS.items()},
}
