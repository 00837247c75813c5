"""Which transforms are native code, one axis after the other, and which a library's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive
from polyax.ops.fft import fft_p
from polyax.trace.recording import trace_to_jaxpr
from polyax_cpu.fourier import factors, library, lines, special
from polyax_cpu.fourier.blocks import LineSide
from polyax_cpu.fourier.lines import Lines
from polyax_cpu.libraries import registers
from polyax_cpu.libraries.registers import Vectors
from polyax_kernels.lower.lowering import Call, CallContext, Lowering, Replace

Avals = Sequence[ShapedArray]
REAL, COMPLEX = ({"float": f"{k}{n}", "double": f"{k}{2 * n}"} for k, n in (("float", 32), ("complex", 64)))
LONGEST = 4096
"""Elements of a line of which as many as there are lanes stay in a core's cache."""
SHORTEST = 64
"""Elements of a line that is worth to be transformed as a matrix."""
LONG = 1024
"""Longer lines are, however many there are."""
MATRIX = 1 << 17
"""Elements of a line of which the roots between columns and rows stay in the cache."""

lines_p = Primitive("fourier_lines")
"""A transform along one axis, or of the rows or columns of a line that is transformed as a matrix."""
lines_p.abstract_eval = lambda x, *, work: [ShapedArray(work.shape, np.dtype(work.result))]
library_p = Primitive("fourier_by_library")
library_p.abstract_eval = fft_p.rule("abstract_eval")
PARTS = lines_p, library_p
"""What the programs are made of that take a transform's place."""
for _p, _rule in itertools.product(PARTS, ("jvp", "transpose", "batch", "factors")):
    _p.never(_rule, "programs are lowered once they have been transformed")


class _Step(NamedTuple):
    """A transform along one axis: of what kind, of which length on the real side."""

    kind: str
    axis: int
    length: int


def _steps(ndim: int, kind: str, lengths: Sequence[int]) -> list[_Step]:
    """The last axis is the first to be transformed, or the last one if real numbers are to be the result."""
    first = ndim - len(lengths)
    others = "IFFT" if kind.startswith("I") else "FFT"
    steps = [_Step(others, first + n, length) for n, length in enumerate(lengths[:-1])]
    last = _Step(kind, ndim - 1, lengths[-1])
    return [*steps, last] if kind == "IRFFT" else [last, *steps]


def _elements(step: _Step) -> int:
    """Of a line while it is transformed: pairs of real numbers are complex ones."""
    return step.length // 2 if step.kind in ("RFFT", "IRFFT") and step.length % 2 == 0 else step.length


def _matrix(shape: Sequence[int], step: _Step) -> tuple[int, int] | None:
    """The rows and columns of the matrix that each line is transformed as; None: it isn't."""
    n = _elements(step)
    if step.axis < len(shape) - 1 or n != step.length or step.kind in ("RFFT", "IRFFT") or not SHORTEST <= n <= MATRIX:
        return None
    if n <= LONG and math.prod(shape[:-1]) >= registers.lanes("float"):
        return None
    rows = max(k for k in range(1, math.isqrt(n) + 1) if n % k == 0)
    return (rows, n // rows) if rows >= registers.lanes("float") else None


def why_not(avals: Avals, params: Mapping[str, Any]) -> str | None:
    (x,) = avals
    if not x.size:
        return "it is empty"
    for step in _steps(x.ndim, params["fft_type"].name, params["fft_lengths"]):
        n, matrix = _elements(step), _matrix(x.shape, step)
        if max(factors.factors(n), default=1) > factors.LARGEST:
            return f"{step.length} has large prime factors"
        if matrix is None and n > LONGEST:
            return f"lines of {step.length} elements are long"
    return None


# --- programs --------------------------------------------------------------------------------------------------------


def program(avals: Avals, **params: Any) -> ClosedJaxpr:
    if why_not(avals, params) is not None:
        return trace_to_jaxpr(lambda x: [library_p.bind1(x, **params)], avals)
    return _programs(avals[0], params["fft_type"].name, params["fft_lengths"])


@lru_cache(maxsize=256)
def _programs(aval: ShapedArray, kind: str, lengths: tuple[int, ...]) -> ClosedJaxpr:
    steps = _steps(aval.ndim, kind, lengths)
    scale = 1 / math.prod(lengths) if kind.startswith("I") else 1.0

    def run(x: Any) -> list[Any]:
        for n, step in enumerate(steps):
            for work in _works(x, step, scale if n == len(steps) - 1 else 1.0):
                x = lines_p.bind1(x, work=work)
        return [x]

    return trace_to_jaxpr(run, [aval])


def _works(x: Any, step: _Step, scale: float) -> list[Lines]:
    matrix = _matrix(x.shape, step)
    return [_along_axis(x, step, scale)] if matrix is None else _of_matrix(x, step, scale, *matrix)


def _type(x: Any) -> str:
    return "double" if x.dtype.name in ("complex128", "float64") else "float"


def _along_axis(x: Any, step: _Step, scale: float) -> Lines:
    type, axis, size = _type(x), step.axis, _elements(step)
    before, behind = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    count = step.length // 2 + 1 if step.kind == "RFFT" else step.length
    to_real, from_real, pairs = step.kind == "IRFFT", step.kind == "RFFT", size < step.length
    around = special.SPLIT if from_real else special.JOIN if pairs else special.MIRROR
    return Lines(
        (*x.shape[:axis], count, *x.shape[axis + 1 :]),
        REAL[type] if to_real else COMPLEX[type],
        type,
        size,
        *((before, behind) if behind >= Vectors(type).lanes else (1, before * behind)),
        step.kind.startswith("I"),
        scale,
        _side(size if pairs and from_real else x.shape[axis], behind, real=from_real and not pairs),
        _side(size if pairs and to_real else count, behind, real=to_real and not pairs),
        around if pairs or to_real else "",
        step.length,
    )


def _side(count: int, behind: int, *, real: bool) -> LineSide[int]:
    """``count`` elements of each line, with ``behind`` lines between them."""
    return LineSide(count, behind, count * behind, 1, behind, 2 - real)


def _of_matrix(x: Any, step: _Step, scale: float, rows: int, columns: int) -> list[Lines]:
    """Columns first; what the rows give are columns again."""
    type, before, inverse = _type(x), math.prod(x.shape[:-1]), step.kind == "IFFT"
    across = LineSide(rows, columns, step.length, 1, columns, 2)
    along = LineSide(columns, rows, step.length, columns, 1, 2)
    turned = LineSide(columns, rows, step.length, 1, rows, 2)
    shared = x.shape, COMPLEX[type], type
    return [
        Lines(*shared, rows, before, columns, inverse, 1.0, across, across, special.BETWEEN, columns),
        Lines(*shared, columns, before, rows, inverse, scale, along, turned),
    ]


def _native(args: Avals, outs: Avals, params: Mapping[str, Any]) -> tuple[int, Lines]:
    work: Lines = params["work"]
    lines.prepare(work.type, work.size, work.special)
    return lines.function(work.type).address("transform"), work


def _transforms(_: CallContext, outs: Avals, args: Avals, params: Mapping[str, Any]) -> Any:
    return library.transform(args[0], params["fft_type"].name, params["fft_lengths"])


LOWERINGS: dict[Primitive, Lowering] = {
    fft_p: Replace(program),
    lines_p: Call(native=_native),
    library_p: Call(prepare=_transforms),
}
