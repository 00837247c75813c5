"""Products on processors whose groups are single threads: packed panels, and products of them in registers.

After Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 34 (2008). Needs the vector
types of OpenCL C.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product as pairs

import numpy as np

from polyax_kernels.gpu.products.packing import Packing
from polyax_kernels.gpu.products.product import Dialect, Launch, Product, Recipe, Text
from polyax_kernels.ir.limits import Limits

VECTORS = {"float32": "float", "float64": "double", "uint32": "uint", "uint64": "ulong"}
SCRATCH = 32 * 2**20
"""Bytes of panels made at a time: they are to stay in the cache."""
TASKS = 4
"""Pieces of the result per compute unit, so that a late one delays little."""
HEIGHT, WIDTH = 96, 128
"""Rows and columns of such a piece, about: the panels that it reads again and again stay near the processor."""


@dataclass(frozen=True)
class PanelTile:
    """Registers for ``rows`` times ``vectors`` vectors of ``bytes`` bytes; ``depth`` is summed up at a time."""

    rows: int
    vectors: int
    bytes: int
    depth: int

    def lanes(self, dtype: np.dtype) -> int:
        return self.bytes // dtype.itemsize

    def columns(self, dtype: np.dtype) -> int:
        return self.vectors * self.lanes(dtype)


REGISTERS = ((6, 2), (4, 3), (12, 1))
"""Rows and vectors of a tile: twelve sums and what they are made from, in sixteen registers."""


def candidates(limits: Limits) -> tuple[PanelTile, ...]:
    """The first one is the default. Cutting sums otherwise needs no other program."""
    return tuple(PanelTile(*registers, limits.vector_bytes, depth) for registers, depth in pairs(REGISTERS, (256, 512)))


def recipe(product: Product, tile: PanelTile, dialect: Dialect, units: int) -> Recipe:
    """Packs parts of both operands and multiplies them, until all is done."""
    dtype = product.accumulator
    columns = tile.columns(dtype)
    heights, widths = -(-product.m // tile.rows), -(-product.n // columns)
    left_bytes, right_bytes = (product.k * dtype.itemsize * lanes for lanes in (tile.rows, columns))
    at_once = max(1, min(product.batch, SCRATCH // (heights * left_bytes + widths * right_bytes)))
    panels = max(1, min(heights, SCRATCH // (left_bytes * at_once)))
    left, right = Packing(product, "left", tile.rows, dialect), Packing(product, "right", columns, dialect)
    multiply = _Multiply(product, tile, dialect, units)
    launches: list[Launch] = []
    for batch in range(0, product.batch, at_once):
        items = min(at_once, product.batch - batch)
        launches.append(right.launch(widths, items, 0, batch))
        for first in range(0, heights, panels):
            some = min(panels, heights - first)
            launches += [left.launch(some, items, first, batch), multiply.launch(some, widths, items, first, batch)]
    return Recipe(tuple(launches), {"a": at_once * panels * left_bytes, "b": at_once * widths * right_bytes})


class _Multiply:
    """The program that multiplies panels; ``launch`` gives a launch for some rows of the result."""

    def __init__(self, product: Product, tile: PanelTile, dialect: Dialect, units: int) -> None:
        self.product, self.tile, self.units = product, tile, units
        self.dtype = product.accumulator
        self.columns = tile.columns(self.dtype)
        self.text = Text(dialect, "multiply", (self.dtype, self.dtype), product.result)
        self._write()
        self.source = self.text.source()

    def launch(self, heights: int, widths: int, items: int, first: int, batch: int) -> Launch:
        height, width = self._piece(heights, widths, items)
        groups = -(-widths // width), -(-heights // height), items
        scalars = (first, batch, heights, widths, height, width, *self.text.numbers.values[6:])
        return Launch(self.source, "multiply", groups, (1, 1, 1), ("a", "b", "out"), scalars)

    def _piece(self, heights: int, widths: int, items: int) -> tuple[int, int]:
        """Panels along both sides of a group's piece; smaller ones where there would be too few."""
        sides = [max(1, HEIGHT // self.tile.rows), max(1, WIDTH // self.columns)]
        while max(sides) > 1 and -(-heights // sides[0]) * -(-widths // sides[1]) * items < TASKS * self.units:
            longer = sides.index(max(sides))
            sides[longer] //= 2
        return sides[0], sides[1]

    @property
    def cut(self) -> bool:
        """Whether sums can be continued from the result without rounding them."""
        return self.product.result.itemsize == self.dtype.itemsize

    def _write(self) -> None:
        text, e = self.text, self.text.emitter
        first, batch, heights, widths, height, width = (text.numbers.passed(0, "int32") for _ in range(6))
        m, n, depth = (text.numbers.index(x) for x in (self.product.m, self.product.n, self.product.k))
        row, step = text.numbers.wide(self.product.row), text.numbers.wide(self.product.step)
        down, right, item = (f"({text.int}){e.group(d)}" for d in (1, 0, 2))
        text.declare(item=item, i0=f"{down} * {height}", j0=f"{right} * {width}")
        text.declare(i1=least(f"i0 + {height}", heights), j1=least(f"j0 + {width}", widths))
        piece = text.numbers.passed(self.tile.depth, "int32") if self.cut else depth
        with text.loop("from", depth, step=piece), text.loop("j", "j1", "j0"), text.loop("i", "i1", "i0"):
            text.declare(stop=least(f"from + {piece}", depth))
            text.declare(rows=f"{m} - (i + {first}) * {self.tile.rows}", columns=f"{n} - j * {self.columns}")
            text.lines.append(
                f"{text.long} x = (((({text.long})item * {heights} + i) * {depth}) + from) * {self.tile.rows};"
            )
            text.lines.append(
                f"{text.long} y = (((({text.long})item * {widths} + j) * {depth}) + from) * {self.columns};"
            )
            self._sum()
            corner = f"({text.long})(i + {first}) * {self.tile.rows} * {row} + j * {self.columns}"
            text.lines.append(f"const {text.long} corner = ({text.long})(item + {batch}) * {step} + {corner};")
            with text.loop("r", least("rows", self.tile.rows)), text.loop("c", least("columns", self.columns)):
                self._put(f"corner + r * {row} + c")

    def _sum(self) -> None:
        """All that the registers hold, into an array."""
        e, vector = self.text.emitter, f"{VECTORS[self.dtype.name]}{self.tile.lanes(self.dtype)}"
        rows, vectors = range(self.tile.rows), range(self.tile.vectors)
        places = [(r, v) for r in rows for v in vectors]
        e.lines.append(f"{vector} {', '.join(f'c{r}_{v} = 0' for r, v in places)};")
        with self.text.loop("d", "stop", "from"):
            e.lines.append("#pragma OPENCL FP_CONTRACT ON")
            e.lines.append(f"const {e.memory_words} {vector} *right = (const {e.memory_words} {vector} *)(b1 + y);")
            e.lines.extend(f"const {vector} y{v} = right[{v}];" for v in vectors)
            e.lines.extend(f"const {vector} x{r} = b0[x + {r}];" for r in rows)
            e.lines.extend(f"c{r}_{v} += x{r} * y{v};" for r, v in places)
            e.lines.append(f"x += {self.tile.rows}; y += {self.columns};")
        e.lines.append(f"{vector} kept[] = {{{', '.join(f'c{r}_{v}' for r, v in places)}}};")

    def _put(self, place: str) -> None:
        """One element of the array, into the result."""
        e, result = self.text.emitter, self.product.result
        value = e.value(self.dtype, f"((const {self.text.type(self.dtype)} *)kept)[r * {self.columns} + c]")
        if self.cut:
            before = e.cast(e.load(2, place, result, "from > 0", "0"), result, self.dtype)
            value = e.value(self.dtype, f"{before} + {value}")
        e.store(2, place, e.cast(value, self.dtype, result), result)


def least(a: object, b: object) -> str:
    return f"({a} < {b} ? {a} : {b})"
