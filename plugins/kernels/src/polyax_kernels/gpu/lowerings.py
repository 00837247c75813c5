"""The lowerings that GPU backends share: what no kernel of loops does well, and no library need be there for."""

from __future__ import annotations

from polyax.ir.primitive import Primitive
from polyax.ops.contract import dot_general_p
from polyax.ops.conv import conv_general_dilated_p
from polyax.ops.scatter import scatter_p
from polyax_kernels.gpu import scatter
from polyax_kernels.gpu.products import convolve, multiply
from polyax_kernels.lower import cumulative
from polyax_kernels.lower.lowering import LoweringKind

LONG, ROWS = 2048, 1024
"""Elements of a row from which on chunks pay for running values, and rows that are work enough for all threads."""

LOWERINGS: dict[Primitive, LoweringKind] = {
    dot_general_p: multiply.PRODUCT,
    conv_general_dilated_p: convolve.CONVOLUTION,
    scatter_p: scatter.LastWins(scatter.program),
    **cumulative.lowerings(LONG, ROWS),
}
