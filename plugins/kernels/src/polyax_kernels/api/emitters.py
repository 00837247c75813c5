"""What code generators are made of: the protocol, the one for C and its dialects, schedules, and who drives them.
And what kernels are made of, for whoever wants to see one computed; ``lowerings`` has the other expressions.
"""

from __future__ import annotations

from polyax_kernels.emit.c import CEmitter, c_source
from polyax_kernels.emit.c_helpers import Helper, real
from polyax_kernels.emit.emitter import Emitter
from polyax_kernels.emit.functions import halves
from polyax_kernels.emit.functions.blocks import Operators, Value
from polyax_kernels.emit.functions.table import FUNCTIONS, TABLE
from polyax_kernels.emit.indices import index_dtype
from polyax_kernels.emit.numpy import NumpyEmitter
from polyax_kernels.emit.schedule import choose
from polyax_kernels.emit.walker import emit_kernel
from polyax_kernels.ir.expr import bitcast, consing, fold, index, param
from polyax_kernels.ir.kernel import Kernel, Operand, Schedule, Stage, Store, kernel_roots
from polyax_kernels.ir.keys import structural_key
from polyax_kernels.ir.scalars import TABLE as SCALARS

__all__ = [
    "FUNCTIONS", "SCALARS", "TABLE", "CEmitter", "Emitter", "Helper", "Kernel", "NumpyEmitter", "Operand", "Operators",
    "Schedule", "Stage", "Store", "Value", "bitcast", "c_source", "choose", "consing", "emit_kernel", "fold", "halves",
    "index", "index_dtype", "kernel_roots", "param", "real", "structural_key",
]  # fmt: skip
