"""Products of batches of matrices on GPUs, and the launches that compute them: what panels.py and tiles.py share.

Knows neither how a product is cut into pieces nor devices.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax_kernels.emit.c import program
from polyax_kernels.gpu.emitter import GpuEmitter
from polyax_kernels.gpu.products.matrices import Matrices, Numbers
from polyax_kernels.gpu.schedule import GpuSchedule
from polyax_kernels.ir.kernel import Kernel, Operand
from polyax_kernels.ir.products import count, sides

Dialect = type[GpuEmitter]


@dataclass(frozen=True)
class Product:
    """``out[b, i, j] = sum over d of left[b, i, d] right[b, j, d]``; ``out[b, i, j]`` is ``step b + row i + j``."""

    batch: int
    m: int
    n: int
    k: int
    left: Matrices
    right: Matrices
    operands: np.dtype
    result: np.dtype
    row: int
    step: int
    order: tuple[int, int] = (0, 1)
    """Which argument of the call each operand is."""

    @property
    def flops(self) -> int:
        return 2 * self.batch * self.m * self.n * self.k

    @property
    def accumulator(self) -> np.dtype:
        """What is summed in: narrow floats in float32; integers wrap around as unsigned ones do."""
        if self.result.kind in "biu":
            return np.dtype("uint64" if self.result.itemsize == 8 else "uint32")
        return np.dtype("float64" if self.result.itemsize == 8 else "float32")


def describe(avals: Sequence[ShapedArray], result: np.dtype, params: Mapping[str, Any]) -> Product:
    """The product that a ``dot_general`` is."""
    left, right = sides(avals, params)
    batch, m, n, k = (count(digits) for digits in (left.batch, left.free, right.free, left.contracted))
    views = Matrices.of(left), Matrices.of(right)
    return Product(batch, m, n, k, *views, np.dtype(avals[0].dtype), np.dtype(result), n, m * n)


@dataclass(frozen=True)
class Launch:
    """One launch of the function ``name`` of a program. ``operands`` are named ``left``, ``right``, ``out``, ``a`` and
    ``b``; the last two are scratch memory."""

    source: str
    name: str
    groups: tuple[int, ...]
    threads: tuple[int, ...]
    operands: tuple[str, ...]
    scalars: tuple[int, ...]


@dataclass(frozen=True)
class Recipe:
    """The launches that compute a product, and the bytes of scratch memory that they need."""

    launches: tuple[Launch, ...]
    scratch: dict[str, int]


class Text:
    """The program of one launch while it is written; ``numbers`` are those that launches pass."""

    def __init__(
        self, dialect: Dialect, name: str, reads: Sequence[np.dtype], writes: np.dtype, threads: int = 1
    ) -> None:
        operands = (*(Operand((1,), d, "in") for d in reads), Operand((1,), writes, "out"))
        self.emitter = dialect(Kernel((), (), operands, name), GpuSchedule("points", (threads, 1)), name)
        self.lines = self.emitter.lines
        self.numbers = Numbers(self.emitter)
        self.int, self.long = self.emitter.types["int32"], self.emitter.types["int64"]

    def type(self, dtype: np.dtype) -> str:
        return self.emitter.types[dtype.name]

    def declare(self, **values: str) -> None:
        """Declares 32-bit indices."""
        self.lines.extend(f"const {self.int} {name} = {x};" for name, x in values.items())

    @contextlib.contextmanager
    def block(self, head: str) -> Generator[None]:
        self.lines.append(f"{head} {{")
        yield
        self.lines.append("}")

    def loop(
        self, i: str, stop: str | int, start: str = "0", step: str = "1"
    ) -> contextlib.AbstractContextManager[None]:
        """A loop over a 32-bit index."""
        return self.block(f"for ({self.int} {i} = {start}; {i} < {stop}; {i} += {step})")

    def source(self) -> str:
        self.emitter.scalars = len(self.numbers.values)
        return program([self.emitter])
