"""Packing: an operand of a product as panels of some lanes, ``[batch, panel, depth, lane]``, with zeros at the end.

What layouts, windows and dtypes operands have matters here only; products of panels see one layout.
"""

from __future__ import annotations

from collections.abc import Callable

from polyax_kernels.gpu.products.matrices import Finder, Matrices, Spot, size
from polyax_kernels.gpu.products.product import Dialect, Launch, Product, Text


class Packing:
    """The program that packs ``left`` or ``right``; ``launch`` gives a launch for some of the panels."""

    def __init__(self, product: Product, side: str, width: int, dialect: Dialect) -> None:
        self.side, self.width = side, width
        self.dtypes = product.operands, product.accumulator
        matrices: Matrices = getattr(product, side)
        self.text = text = Text(dialect, "pack", self.dtypes[:1], self.dtypes[1])
        first, batch = (text.numbers.passed(0, "int32") for _ in range(2))
        self.total = text.numbers.index(size(matrices.lanes))
        self.depth = text.numbers.index(product.k)
        self.finder = Finder(text.emitter, text.numbers, matrices, 0)
        self._write(matrices, first, batch)
        self.source = text.source()

    def launch(self, panels: int, items: int, first: int, batch: int) -> Launch:
        scalars = (first, batch, *self.text.numbers.values[2:])
        scratch = "ab"[self.side == "right"]
        return Launch(self.source, "pack", (panels, items, 1), (1, 1, 1), (self.side, scratch), scalars)

    def _write(self, matrices: Matrices, first: str, batch: str) -> None:
        text, e = self.text, self.text.emitter
        panel, item = (f"({text.int}){e.group(n)}" for n in (0, 1))
        text.declare(lane=f"({panel} + {first}) * {self.width}", batch=f"{item} + {batch}")
        text.declare(count=f"{self.total} - lane < {self.width} ? {self.total} - lane : {self.width}")
        place = f"({text.long}){e.group(1)} * {e.groups(0)} + {e.group(0)}"
        text.lines.append(f"{text.long} to = ({place}) * {self.depth} * {self.width};")
        self.base = self.finder.kept(self.finder.start.plus(self.finder.spot(self.finder.batch, "batch")))
        if matrices.along_depth:
            self._lane_by_lane()
        elif matrices.straight(self.width):
            self._straight_lanes()
        else:
            self._scattered_lanes()

    def _lane_by_lane(self) -> None:
        """Memory runs along the depth."""
        text, finder = self.text, self.finder
        with text.loop("r", "count"):
            text.declare(here="lane + r")
            lane = finder.kept(self.base.plus(finder.spot(finder.lanes, "here")))
            text.lines.append(f"{text.long} at = to + r;")
            finder.nest(finder.depth, lambda d: self._element(lane.plus(d), "at", f"at += {self.width};"))
        with text.loop("r", self.width, "count"), text.loop("d", self.depth):
            self._store(f"to + ({text.long})d * {self.width} + r", "0")

    def _straight_lanes(self) -> None:
        """The same step leads from each lane of the panel to the next; whole panels are loops that vectorise."""
        finder = self.finder
        lane = finder.kept(self.base.plus(finder.spot(finder.lanes, "lane")))
        self._by_depth(lambda d, r: lane.plus(d).plus(finder.moved(finder.lanes[-1], r)))

    def _scattered_lanes(self) -> None:
        """Where each lane begins is kept in arrays."""
        text, finder = self.text, self.finder
        names = [f"w{n}" for n in range(len(finder.windows))]
        text.lines.append(f"{text.long} o[{self.width}];")
        text.lines.extend(f"{text.int} {name}[{self.width}];" for name in names)
        with text.loop("r", "count"):
            text.declare(here="lane + r")
            lane = self.base.plus(finder.spot(finder.lanes, "here"))
            text.lines += [f"{x}[r] = {y};" for x, y in zip(("o", *names), (lane.offset, *lane.positions), strict=True)]
        self._by_depth(lambda d, r: Spot(f"o[{r}]", tuple(f"{name}[{r}]" for name in names)).plus(d))

    def _by_depth(self, spot: Callable[[Spot, str], Spot]) -> None:
        """Memory runs along the lanes."""
        text = self.text

        def panel(depth: Spot) -> None:
            with text.block(f"if (count == {self.width})"), text.loop("r", self.width):
                self._element(spot(depth, "r"), "to + r")
            with text.block("else"), text.loop("r", self.width):
                self._element(spot(depth, "r"), "to + r", mask="r < count")
            text.lines.append(f"to += {self.width};")

        self.finder.nest(self.finder.depth, panel)

    def _element(self, spot: Spot, to: str, after: str = "", mask: str | None = None) -> None:
        self._store(to, self.finder.load(spot, *self.dtypes, mask))
        self.text.lines += [after] if after else []

    def _store(self, to: str, value: str) -> None:
        self.text.emitter.store(1, to, value, self.dtypes[1])
