"""Products on devices whose groups have fast memory of their own: a group computes a tile of the result.

Piece by piece, tiles of both operands are brought into local memory; each thread multiplies its rows with its columns
in registers. After the tiling of Volkov and Demmel, "Benchmarking GPUs to tune dense linear algebra", SC 2008.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyax_kernels.gpu.products.matrices import Finder, Matrices
from polyax_kernels.gpu.products.product import Dialect, Launch, Product, Recipe, Text
from polyax_kernels.ir.limits import Limits

PAD = 1
"""Elements between rows of local tiles, so that threads that fill them don't meet in one bank."""


@dataclass(frozen=True)
class Tile:
    """``height x width`` elements of the result are a group's, ``rows x columns`` a thread's; ``depth`` elements are
    summed up between two barriers."""

    height: int
    width: int
    depth: int
    rows: int
    columns: int

    @property
    def threads(self) -> int:
        return self.height // self.rows * (self.width // self.columns)

    def local_bytes(self, dtype: np.dtype) -> int:
        return (self.height + self.width + 2 * PAD) * self.depth * dtype.itemsize


SMALLEST = Tile(16, 16, 16, 2, 2)
DEFAULT = Tile(64, 64, 16, 4, 4)
CANDIDATES = (
    DEFAULT,
    Tile(128, 128, 8, 8, 8),
    Tile(128, 64, 16, 8, 4),
    Tile(64, 128, 16, 4, 8),
    Tile(64, 32, 16, 4, 4),
    Tile(32, 64, 16, 4, 4),
    Tile(32, 32, 16, 2, 2),
    SMALLEST,
)


def fits(tile: Tile, dtype: np.dtype, limits: Limits) -> bool:
    return tile.threads <= limits.threads and tile.local_bytes(dtype) <= limits.local_bytes


def recipe(product: Product, tile: Tile, dialect: Dialect) -> Recipe:
    """One launch, a group for each tile of the result."""
    writer = _Writer(product, tile, dialect)
    groups = -(-product.n // tile.width), -(-product.m // tile.height), product.batch
    scalars = tuple(writer.text.numbers.values)
    source = writer.text.source()
    threads = (tile.threads, 1, 1)
    return Recipe((Launch(source, "multiply", groups, threads, ("left", "right", "out"), scalars),), {})


class _Writer:
    def __init__(self, product: Product, tile: Tile, dialect: Dialect) -> None:
        self.product, self.tile = product, tile
        self.dtype = product.accumulator
        self.text = Text(dialect, "multiply", (product.operands,) * 2, product.result, tile.threads)
        self.type = self.text.type(self.dtype)
        self.places = [(r, c) for r in range(tile.rows) for c in range(tile.columns)]
        self._write()

    def _write(self) -> None:
        text, e, tile = self.text, self.text.emitter, self.tile
        m, n, depth = (text.numbers.index(x) for x in (self.product.m, self.product.n, self.product.k))
        across = tile.width // tile.columns
        text.declare(thread=e.thread(0), batch=e.group(2))
        text.declare(across=f"thread % {across}", down=f"thread / {across}")
        text.declare(row=f"{e.group(1)} * {tile.height}", column=f"{e.group(0)} * {tile.width}")
        text.lines.append(f"{e.local_words} {self.type} x[{tile.depth * (tile.height + PAD)}];")
        text.lines.append(f"{e.local_words} {self.type} y[{tile.depth * (tile.width + PAD)}];")
        loads = [
            _Load(self, self.product.left, 0, "x", "row", m, tile.height),
            _Load(self, self.product.right, 1, "y", "column", n, tile.width),
        ]
        text.lines.append(f"{self.type} {', '.join(f'c{r}_{c} = 0' for r, c in self.places)};")
        with text.loop("from", depth, step=str(tile.depth)):
            for load in loads:
                load.write(depth)
            text.lines.append(e.barrier_words)
            self._multiply()
            text.lines.append(e.barrier_words)
        self._store(m, n)

    def _multiply(self) -> None:
        tile, lines = self.tile, self.text.lines
        down, across = tile.height // tile.rows, tile.width // tile.columns
        with self.text.loop("d", tile.depth):
            lines.append(
                f"const {self.text.int} p = d * {tile.height + PAD} + down, q = d * {tile.width + PAD} + across;"
            )
            lines.extend(f"const {self.type} x{r} = x[p + {r * down}];" for r in range(tile.rows))
            lines.extend(f"const {self.type} y{c} = y[q + {c * across}];" for c in range(tile.columns))
            lines.extend(f"c{r}_{c} = {self._sum(f'x{r}', f'y{c}', f'c{r}_{c}')};" for r, c in self.places)

    def _sum(self, x: str, y: str, total: str) -> str:
        return f"fma({x}, {y}, {total})" if self.dtype.kind == "f" else f"{total} + {x} * {y}"

    def _store(self, m: str, n: str) -> None:
        text, e, tile = self.text, self.text.emitter, self.tile
        row, step = text.numbers.wide(self.product.row), text.numbers.wide(self.product.step)
        text.lines.append(f"const {text.long} corner = ({text.long})batch * {step};")
        for r, c in self.places:
            i, j = (
                f"row + down + {r * (tile.height // tile.rows)}",
                f"column + across + {c * (tile.width // tile.columns)}",
            )
            with text.block(f"if ({i} < {m} && {j} < {n})"):
                value = e.cast(f"c{r}_{c}", self.dtype, self.product.result)
                e.store(2, f"corner + ({text.long})({i}) * {row} + {j}", value, self.product.result)


class _Load:
    """Brings tiles of one operand into local memory; neighbouring threads read neighbouring elements."""

    def __init__(
        self, writer: _Writer, matrices: Matrices, slot: int, name: str, first: str, total: str, lanes: int
    ) -> None:
        self.writer, self.name, self.first, self.total, self.lanes = writer, name, first, total, lanes
        self.along_depth = matrices.along_depth
        text = writer.text
        self.finder = finder = Finder(text.emitter, text.numbers, matrices, slot)
        self.base = finder.kept(finder.start.plus(finder.spot(finder.batch, "batch")))

    def write(self, depth: str) -> None:
        text, tile, finder = self.writer.text, self.writer.tile, self.finder
        with text.loop("i", self.lanes * tile.depth, "thread", str(tile.threads)):
            fast, slow = ("in", "by") if self.along_depth else ("by", "in")
            width = tile.depth if self.along_depth else self.lanes
            text.declare(**{fast: f"i % {width}", slow: f"i / {width}"})
            text.declare(lane=f"{self.first} + by", deep="from + in")
            spot = self.base.plus(finder.spot(finder.lanes, "lane")).plus(finder.spot(finder.depth, "deep"))
            inside = f"lane < {self.total} && deep < {depth}"
            value = finder.load(spot, self.writer.product.operands, self.writer.dtype, inside)
            text.lines.append(f"{self.name}[in * {self.lanes + PAD} + by] = {value};")
