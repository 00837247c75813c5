"""Arguments marked by position or by name, as ``static_argnums`` and ``donate_argnames`` do."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from polyax.trace.flat import name_of


class Positions:
    """Positions and names of marked arguments. Where one of them is None, the function's parameters tell it by the
    other.

    Args:
      option: the option that marks them: ``static``, ``donate``, ``nondiff``.
      caller: the transformation that has the option.
      late: whether positions are checked by calls instead of by the function's parameters.
    """

    def __init__(
        self, option: str, fun: Callable[..., Any], caller: str, nums: Any, names: Any, late: bool = False
    ) -> None:
        kind = {"jit": "jitted", "make_jaxpr": "jitted", "pmap": "pmapped"}.get(caller, caller) + " function"
        self.given = () if nums is None else (nums,) if hasattr(nums, "__index__") else tuple(nums)
        if not all(hasattr(n, "__index__") for n in self.given):
            raise TypeError(f"the `{option}_argnums` argument of a {kind} must be an int or ints, got {nums!r}")
        self.nums = frozenset(self.given)
        self.names = frozenset(() if names is None else (names,) if isinstance(names, str) else names)
        if not self:
            return
        try:
            parameters = list(inspect.signature(fun).parameters.values())
        except (TypeError, ValueError):
            if self.names and not self.given:
                instead = f"Pass {option}_argnums instead of {option}_argnames."
                raise ValueError(f"Getting the signature of function {fun} failed. {instead}") from None
            return
        if not late:
            _check(self, f"{kind.replace('jitted', 'Jitted')} has", option, parameters, name_of(fun))
        positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        count = len(positional)
        if not any(p.kind == p.VAR_POSITIONAL for p in parameters):
            self.nums = frozenset(i % count for i in self.nums if -count <= i < count)
        if names is None:
            self.names = frozenset(positional[i] for i in self.nums if 0 <= i < count)
        elif nums is None:
            self.nums = frozenset(positional.index(n) for n in self.names if n in positional)

    def __bool__(self) -> bool:
        return bool(self.nums or self.names)

    @property
    def marks(self) -> Any:
        """What tells these from others of the same function."""
        return self.given, self.nums, self.names

    def at(self, count: int) -> list[int]:
        """The positions in a call with so many positional arguments, in order; none of those that it leaves out."""
        return sorted(n % count for n in self.nums if -count <= n < count)

    def refuse_overlap(self, static: Positions) -> None:
        """Raises if one of these arguments, which are donated, is static."""
        if both := set(self.names & static.names):
            raise ValueError(
                f"static_argnames and donate_argnames cannot intersect. Argument names {both} appear in both "
                "static_argnames and donate_argnames"
            )
        if numbers := set(self.nums & static.nums):
            raise ValueError(
                f"static_argnums and donate_argnums cannot intersect. Argument numbers {numbers} appear "
                "in both static_argnums and donate_argnums"
            )


def unless_empty(marked: Any) -> Any:
    """None for ``()``, by which some transformations say that nothing is marked."""
    return None if marked == () else marked


UNMARKED = Positions("", lambda: None, "", None, None)


def _check(marked: Positions, has: str, option: str, parameters: list[inspect.Parameter], fun: str) -> None:
    """Raises if the function has no such parameters."""
    kinds = {p.kind for p in parameters}
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    if inspect.Parameter.VAR_POSITIONAL not in kinds and not all(-count <= i < count for i in marked.nums):
        raise ValueError(f"{has} {option}_argnums={marked.given}, but only accepts {count} positional arguments: {fun}")
    fixed = {p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)} & marked.names
    if fixed:
        raise ValueError(f"{has} invalid argnames {fixed} in {option}_argnames. These are positional-only: {fun}")
    unknown = set(marked.names) - {p.name for p in parameters}
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        raise ValueError(
            f"{has} invalid argnames {unknown} in {option}_argnames. Function does not take these args: {fun}"
        )
