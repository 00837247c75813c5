"""In which order the operands of a product in Einstein's notation meet, two at a time, and what that costs.

Terms are strings of letters, one for each axis; a path says which places of the list of terms meet, and what comes of
them is put last.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax.ir.dims import is_symbolic_dim

__all__ = ["PartialProduct", "PathInfo", "best_path", "path_info"]

EXHAUSTIVE = 6
"""Up to how many operands all orders are tried, of which there are 2700 then; of more, NumPy's greedy one is taken."""
NOMINAL = 100

Path = tuple[tuple[int, ...], ...]


@functools.lru_cache(1024)
def best_path(terms: tuple[str, ...], output: str, shapes: tuple[tuple[int, ...], ...]) -> Path:
    """The path with the fewest operations, the first one of several; as if symbolic dimensions were ``NOMINAL``."""
    shapes = tuple(tuple(NOMINAL if is_symbolic_dim(n) else n for n in shape) for shape in shapes)
    if len(terms) <= EXHAUSTIVE:
        return _Search(output, sizes_of(terms, shapes)).best(terms)
    stand_ins = [np.broadcast_to(np.float32(0), shape) for shape in shapes]
    text = f"{','.join(terms)}->{output}"
    return tuple(map(tuple, np.einsum_path(text, *stand_ins, optimize="greedy")[0][1:]))


def sizes_of(terms: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """How long the axis of each letter is; one that is 1 in an operand is stretched."""
    sizes: dict[str, int] = {}
    for letter, n in itertools.chain.from_iterable(map(zip, terms, shapes)):
        sizes[letter] = max(sizes.get(letter, n), n)
    return sizes


class _Search:
    """All orders, depth first; those that cost as much as the best one so far are left."""

    def __init__(self, output: str, sizes: Mapping[str, int]) -> None:
        self.output, self.sizes = output, sizes
        self.path: Path = ()
        self.cost: float = math.inf

    def best(self, terms: tuple[str, ...]) -> Path:
        self._go_on(terms, (), 0)
        return self.path

    def _go_on(self, terms: tuple[str, ...], path: Path, cost: int) -> None:
        if len(terms) == 1:
            self.path, self.cost = path, cost
            return
        for pair in itertools.combinations(range(len(terms)), 2):
            met = PartialProduct.of(terms, pair, self.output)
            total = cost + met.operations(self.sizes)
            if total < self.cost:
                self._go_on((*met.others, met.result), (*path, pair), total)


@dataclass(frozen=True)
class PartialProduct:
    """Some terms that meet: what they are, what comes of them, and which terms are left besides."""

    taken: tuple[str, ...]
    result: str
    others: tuple[str, ...]

    @classmethod
    def of(cls, terms: Sequence[str], places: Sequence[int], output: str) -> PartialProduct:
        taken = tuple(terms[i] for i in places)
        others = tuple(t for i, t in enumerate(terms) if i not in places)
        letters = dict.fromkeys("".join(taken))
        needed = {*output, *"".join(others)}
        return cls(taken, output if not others else "".join(c for c in letters if c in needed), others)

    @property
    def summed(self) -> frozenset[str]:
        return frozenset("".join(self.taken)) - frozenset(self.result)

    def operations(self, sizes: Mapping[str, int]) -> int:
        """Multiplications and, where letters are summed over, as many additions."""
        each = max(1, len(self.taken) - 1) + bool(self.summed)
        return each * math.prod(sizes[c] for c in set("".join(self.taken)))


@dataclass(frozen=True, repr=False)
class PathInfo:
    """What a path costs; its text is a table of the products.

    Attributes:
      path: which places meet, one after another.
      eq: the product, as text.
      contraction_list: of each product the places, the letters summed over, itself as text, and the terms after it.
      naive_cost, opt_cost: the operations of all in one loop, and of this path.
      scale_list: how many letters each product has.
      size_list: how many elements each product makes.
      size_dict: how long the axis of each letter is.
    """

    path: list[tuple[int, ...]]
    eq: str
    contraction_list: list[tuple[Any, ...]]
    naive_cost: int
    opt_cost: int
    scale_list: list[int]
    size_list: list[int]
    size_dict: dict[str, int]

    @property
    def speedup(self) -> float:
        return self.naive_cost / max(self.opt_cost, 1)

    @property
    def largest_intermediate(self) -> int:
        return max(self.size_list)

    def __repr__(self) -> str:
        facts = {
            "Complete contraction": self.eq,
            "Naive scaling": len(self.size_dict),
            "Optimized scaling": max(self.scale_list),
            "Naive FLOP count": f"{self.naive_cost:.3e}",
            "Optimized FLOP count": f"{self.opt_cost:.3e}",
            "Theoretical speedup": f"{self.speedup:.3e}",
            "Largest intermediate": f"{self.largest_intermediate:.3e} elements",
        }
        output = self.eq.partition("->")[2]
        rows = [
            f"{scale:4d}    {product:>24} {','.join(left) + '->' + output:>40}"
            for scale, (_, _, product, left) in zip(self.scale_list, self.contraction_list, strict=True)
        ]
        line = "-" * 73
        head = f"{'scaling':7} {'current':>24} {'remaining':>40}"
        return "\n".join([*(f"{name:>22}:  {fact}" for name, fact in facts.items()), line, head, line, *rows])


def path_info(
    terms: Sequence[str], output: str, shapes: Sequence[tuple[int, ...]], path: list[tuple[int, ...]]
) -> PathInfo:
    """What is to be said of ``path``."""
    sizes = sizes_of(terms, shapes)
    left, meetings = list(terms), []
    for places in path:
        meetings.append(PartialProduct.of(left, places, output))
        left = [*meetings[-1].others, meetings[-1].result]
    return PathInfo(
        path=path,
        eq=f"{','.join(terms)}->{output}",
        contraction_list=[
            (places, m.summed, f"{','.join(m.taken)}->{m.result}", (*m.others, m.result))
            for places, m in zip(path, meetings, strict=True)
        ],
        naive_cost=PartialProduct(tuple(terms), output, ()).operations(sizes),
        opt_cost=sum(m.operations(sizes) for m in meetings),
        scale_list=[len(set("".join(m.taken))) for m in meetings],
        size_list=[math.prod(sizes[c] for c in m.result) for m in meetings],
        size_dict=sizes,
    )
