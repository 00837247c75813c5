"""``polyax.experimental.pallas``: kernels written with references to blocks, as loops of ordinary operations.

Re-exports only.
"""

from typing import Any as _Any

from polyax import late as _late
from polyax.control.refs.slices import Slice as Slice
from polyax.control.refs.slices import ds as ds
from polyax.experimental.checkify import debug_check as debug_check
from polyax.experimental.pallas.blocks import BlockDim as BlockDim
from polyax.experimental.pallas.blocks import Blocked as Blocked
from polyax.experimental.pallas.blocks import BlockSpec as BlockSpec
from polyax.experimental.pallas.blocks import BoundedSlice as BoundedSlice
from polyax.experimental.pallas.blocks import Buffered as Buffered
from polyax.experimental.pallas.blocks import CompilerParams as CompilerParams
from polyax.experimental.pallas.blocks import CostEstimate as CostEstimate
from polyax.experimental.pallas.blocks import Element as Element
from polyax.experimental.pallas.blocks import GridSpec as GridSpec
from polyax.experimental.pallas.blocks import KernelMemory as MemorySpace
from polyax.experimental.pallas.blocks import MemoryRef as MemoryRef
from polyax.experimental.pallas.blocks import RevisitMode as RevisitMode
from polyax.experimental.pallas.blocks import Squeezed as Squeezed
from polyax.experimental.pallas.blocks import no_block_spec as no_block_spec
from polyax.experimental.pallas.blocks import squeezed as squeezed
from polyax.experimental.pallas.calls import pallas_call as pallas_call
from polyax.experimental.pallas.grids import num_programs as num_programs
from polyax.experimental.pallas.grids import program_id as program_id
from polyax.experimental.pallas.writing import align_to as align_to
from polyax.experimental.pallas.writing import broadcast_to as broadcast_to
from polyax.experimental.pallas.writing import cdiv as cdiv
from polyax.experimental.pallas.writing import debug_print as debug_print
from polyax.experimental.pallas.writing import empty as empty
from polyax.experimental.pallas.writing import empty_like as empty_like
from polyax.experimental.pallas.writing import empty_ref_like as empty_ref_like
from polyax.experimental.pallas.writing import loop as loop
from polyax.experimental.pallas.writing import multiple_of as multiple_of
from polyax.experimental.pallas.writing import next_power_of_2 as next_power_of_2
from polyax.experimental.pallas.writing import reciprocal as reciprocal
from polyax.experimental.pallas.writing import run_scoped as run_scoped
from polyax.experimental.pallas.writing import run_state as run_state
from polyax.experimental.pallas.writing import strides_from_shape as strides_from_shape
from polyax.experimental.pallas.writing import when as when
from polyax.experimental.pallas.writing import with_scoped as with_scoped
from polyax.runtime.contract.tracebacks import warn_user as _warn_user

ANY = MemorySpace.ANY
HOST = MemorySpace.HOST
dslice = ds
_LATE = _late.submodules(__name__, "tpu", "triton")
_MOVED = _late.names_of(f"{__name__}.triton", "dot")


def __getattr__(name: str) -> _Any:
    if name in _MOVED:
        _warn_user(f"{__name__}.{name} was moved to {_MOVED[name]}; jax.numpy.dot does the same.", DeprecationWarning)
    return _late.load(__name__, {**_LATE, **_MOVED}, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
