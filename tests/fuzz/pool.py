"""The values that a random program has so far, and choosing from them. Knows no operation.

Each choice depends on the seed, on shapes and on dtypes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from fuzz.record import Namespace, Recorder

LARGEST = 2000
"""Elements of an array; larger ones are reduced."""
KINKED = {"abs", "sign", "maximum", "minimum", "max", "min", "cummax", "cummin"}
"""Operations without a derivative somewhere."""


@dataclass(frozen=True)
class Value:
    """A symbol; whether all platforms agree on its bits; and for inexact ones a bound of its elements."""

    x: Any
    exact: bool = True
    bound: float = 4.0

    @property
    def kind(self) -> str:
        return self.x.dtype.kind

    def inside(self, x: Any) -> Value:
        """What a function knows of its parameter ``x`` that stands for this value."""
        return Value(x, self.exact, self.bound)


@dataclass
class Context:
    """What an operation chooses from. In ``smooth`` programs everything has a derivative everywhere."""

    recorder: Recorder
    random: Random
    pool: list[Value]
    operations: Sequence[Callable[[Context], Value | list[Value] | None]]
    depth: int = 0
    smooth: bool = False

    @property
    def np(self) -> Namespace:
        return Namespace(self.recorder, "jnp")

    @property
    def lax(self) -> Namespace:
        return Namespace(self.recorder, "lax")

    def inner(self, pool: list[Value]) -> Context:
        return replace(self, pool=list(pool), depth=self.depth - 1)

    def grow(self, steps: int) -> None:
        """Does ``steps`` operations; a body that is given nothing begins with numbers of its own."""
        self.pool = self.pool or [Value(self.np.ones(2, "float32"))]
        while steps:
            result = self.random.choice(self.operations)(self)
            if result is not None:
                self.pool += map(self.tamed, result if isinstance(result, list) else [result])
                steps -= 1

    def tamed(self, v: Value) -> Value:
        """Arrays stay small, and inexact numbers far from overflow."""
        if v.x.size > LARGEST:
            v = Value(v.x[0], v.exact, v.bound)
        return Value(self.np.tanh(v.x), False, 1.0) if v.kind == "f" and v.bound > 1e3 else v

    def choose(self, good: Callable[[Value], bool] = lambda v: True) -> Value | None:
        """A value for which ``good`` holds, recent ones preferred."""
        found = [v for v in self.pool if good(v)]
        return found[max(self.random.randrange(len(found)), self.random.randrange(len(found)))] if found else None

    def partner(self, v: Value, good: Callable[[Value], bool] = lambda v: True) -> Value:
        """Another value that broadcasts with ``v``, or ``v`` again."""
        return self.choose(lambda w: good(w) and broadcast(v.x.shape, w.x.shape)) or v

    def pick(self, *names: str) -> str:
        """One of the names of functions, in smooth programs one that is smooth."""
        return self.random.choice([n for n in names if not (self.smooth and n in KINKED)])

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability


def broadcast(a: Sequence[int], b: Sequence[int]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b)))


def fits(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether ``a`` broadcasts to ``b``."""
    return len(a) <= len(b) and all(m in (1, n) for m, n in zip(reversed(a), reversed(b)))


def discrete(v: Value) -> bool:
    return v.kind in "iu"


def exact(v: Value) -> bool:
    return v.exact or v.kind != "f"
