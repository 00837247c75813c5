"""The table of shared rules, and the decorator that fills it. Keyed by name: no primitive need be imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyax_kernels.lowering import Inline, Kernels, Lowering, WhyNot, always

RULES: dict[str, Lowering] = {"pjit": Inline("jaxpr")}

Build = Callable[..., Any]


def kernels(
    *names: str, why_not: WhyNot = always, aliases: bool = False, each: bool = False
) -> Callable[[Build], Build]:
    """Decorator: the function is the shared rule of the primitives ``names``."""

    def register(build: Build) -> Build:
        for name in names:
            RULES[name] = Kernels(build, why_not, aliases=aliases, each=each)
        return build

    return register
