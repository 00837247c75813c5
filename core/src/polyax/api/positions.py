"""Arguments marked by position or by name, as ``static_argnums`` and ``donate_argnames`` do."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from polyax.trace.flat import name_of


def _as_tuple(x: Any, kind: type) -> tuple[Any, ...]:
    if x is None:
        return ()
    return (x,) if isinstance(x, kind) else tuple(x)


class Positions:
    """Positions and names of marked arguments, each completed from the other by the function's signature."""

    def __init__(self, what: str, fun: Callable[..., Any], nums: Any, names: Any) -> None:
        self.nums, self.names = set(_as_tuple(nums, int)), set(_as_tuple(names, str))
        if not self.nums and not self.names:
            return
        try:
            parameters = list(inspect.signature(fun).parameters.values())
        except (TypeError, ValueError):
            return
        positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self._check(what, fun, parameters, len(positional))
        self.nums = {i % len(positional) if i < 0 else i for i in self.nums}
        if names is None:
            self.names = {positional[i] for i in self.nums if i < len(positional)}
        elif nums is None:
            self.nums = {positional.index(n) for n in self.names if n in positional}

    def _check(self, what: str, fun: Callable[..., Any], parameters: list[inspect.Parameter], count: int) -> None:
        var_positional = any(p.kind == p.VAR_POSITIONAL for p in parameters)
        var_keyword = any(p.kind == p.VAR_KEYWORD for p in parameters)
        known = {p.name for p in parameters}
        for i in self.nums:
            if not var_positional and not -count <= i < count:
                raise ValueError(
                    f"jitted function has {what}_argnums={tuple(self.nums)} but only accepts {count} "
                    f"positional arguments: {name_of(fun)}"
                )
        for n in self.names:
            if not var_keyword and n not in known:
                raise ValueError(
                    f"jitted function has invalid argnames {{{n!r}}} in {what}_argnames. Function "
                    f"does not take these args: {name_of(fun)}"
                )

    def refuse_overlap(self, static: Positions) -> None:
        """Raises if one of these arguments, which are donated, is static."""
        both = sorted(map(str, (self.nums & static.nums) | (self.names & static.names)))
        if both:
            raise ValueError(
                "static_argnums and donate_argnums cannot intersect, nor can static_argnames and donate_argnames: "
                f"{', '.join(both)} in both"
            )
