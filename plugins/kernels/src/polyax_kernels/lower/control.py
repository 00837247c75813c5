"""Loops and branches as lowerings: which programs of an equation run, and what each of them works on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polyax.ir.jaxpr import ClosedJaxpr
from polyax.runtime.contract.hooks import WhyNot
from polyax_kernels.lower.lowering import LoweringKind, always


class LoopParts(NamedTuple):
    """The fields of a ``LoopNode`` that follow from parameters."""

    body: ClosedJaxpr
    test: ClosedJaxpr | None
    consts: tuple[int, int]
    carries: int
    length: int | None
    reverse: bool


@dataclass(frozen=True)
class Loop(LoweringKind):
    """The primitive runs a program again and again: ``parts(**params)`` says which and on what."""

    parts: Callable[..., LoopParts]
    why_not: WhyNot = always
    priority: int = 0


@dataclass(frozen=True)
class Branch(LoweringKind):
    """The primitive runs one of ``branches(**params)`` on its arguments but the first, which is the number of it."""

    branches: Callable[..., Sequence[ClosedJaxpr]]
    why_not: WhyNot = always
    priority: int = 0


def _scan(*, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, length: int, reverse: bool, **_: Any) -> LoopParts:
    return LoopParts(jaxpr, None, (0, num_consts), num_carry, length, reverse)


def _while(*, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int, body_nconsts: int) -> LoopParts:
    consts = cond_nconsts, body_nconsts
    return LoopParts(body_jaxpr, cond_jaxpr, consts, len(body_jaxpr.out_avals), None, False)


CONTROL: dict[str, Loop | Branch] = {
    "cond": Branch(lambda *, branches: branches),
    "while": Loop(_while),
    "scan": Loop(_scan),
}
"""The rules that all kernel backends share."""
