"""Effects: what an equation does besides computing its results. Part of every jaxpr's type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Effect:
    """``ordered`` effects happen in program order on one device; others only happen."""

    name: str = ""
    ordered: bool = False

    of_values: ClassVar[bool] = False
    """Whether it says something of values, and does nothing: then branches that aren't taken may have it."""

    of_debugging: ClassVar[bool] = False
    """Whether it only shows values: then ``vmap`` of ``cond`` may have it of branches that an example doesn't take."""

    def __repr__(self) -> str:
        return self.name or type(self).__name__


Effects = frozenset[Effect]
NO_EFFECTS: Effects = frozenset()


class DebugEffect(Effect):
    """A print or another callback for looking into programs."""

    of_debugging = True

    def __init__(self) -> None:
        super().__init__("Debug")


class OrderedDebugEffect(Effect):
    """Such an effect, in the order of the program."""

    of_debugging = True

    def __init__(self) -> None:
        super().__init__("OrderedDebug", ordered=True)


debug_effect = DebugEffect()
ordered_debug_effect = OrderedDebugEffect()
io_effect = Effect("IO")
ordered_io_effect = Effect("OrderedIO", ordered=True)


def of_one_device(effects: Effects) -> list[Effect]:
    """Those that programs for several devices can't have: their order is that of one device."""
    return [e for e in effects if e.ordered and e is not ordered_io_effect]


def join_effects(sets: Iterable[Effects]) -> Effects:
    return frozenset().union(*sets)
