"""Sums and extrema as MPI computes them: its own operation where it means what NumPy means, else NumPy's."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes  # noqa: F401  (NumPy knows its dtypes by name)
import numpy as np
from mpi4py import MPI

from polyax.backend import OPERATIONS

NATIVE: dict[str, MPI.Datatype] = {
    "int8": MPI.INT8_T,
    "int16": MPI.INT16_T,
    "int32": MPI.INT32_T,
    "int64": MPI.INT64_T,
    "uint8": MPI.UINT8_T,
    "uint16": MPI.UINT16_T,
    "uint32": MPI.UINT32_T,
    "uint64": MPI.UINT64_T,
    "float32": MPI.FLOAT,
    "float64": MPI.DOUBLE,
}
"""Numbers that MPI computes with."""
LOGICAL = {"psum": MPI.BOR, "pmax": MPI.BOR, "pmin": MPI.BAND}
ARITHMETIC = {"psum": MPI.SUM, "pmax": MPI.MAX, "pmin": MPI.MIN}


class Reduction:
    """How MPI reduces arrays of a dtype: its datatype, its operation, and how many of them an element is."""

    def __init__(self, datatype: MPI.Datatype, operation: MPI.Op, per_element: int = 1) -> None:
        self.datatype = datatype
        self.operation = operation
        self.per_element = per_element

    def buffer(self, x: np.ndarray) -> Any:
        return [x.view(np.uint8), x.size * self.per_element, self.datatype]


@functools.cache
def reduction(operation: str, dtype: np.dtype) -> Reduction:
    """MPI's extrema drop NaN, ours keep it: those of floats are NumPy's."""
    if dtype == np.dtype(bool):
        return Reduction(MPI.UINT8_T, LOGICAL[operation])
    if dtype.kind == "c" and operation == "psum":
        return Reduction(NATIVE[f"float{4 * dtype.itemsize}"], MPI.SUM, 2)
    if dtype.name in NATIVE and (operation == "psum" or dtype.kind in "iu"):
        return Reduction(NATIVE[dtype.name], ARITHMETIC[operation])
    return Reduction(_datatype(dtype), _numpys(operation))


@functools.cache
def _datatype(dtype: np.dtype) -> MPI.Datatype:
    """Elements as bytes; the name says what they are."""
    made = MPI.BYTE.Create_contiguous(dtype.itemsize).Commit()
    made.Set_name(dtype.name)
    return made


@functools.cache
def _numpys(operation: str) -> MPI.Op:
    """MPI calls it with pieces of memory; one serves all dtypes, as MPI has room for a few only."""
    combine = OPERATIONS[operation]

    def reduce(source: Any, target: Any, datatype: MPI.Datatype) -> None:
        dtype = np.dtype(datatype.Get_name())
        out = np.frombuffer(target, dtype)
        out[...] = combine(np.frombuffer(source, dtype), out)

    return MPI.Op.Create(reduce, commute=True)
