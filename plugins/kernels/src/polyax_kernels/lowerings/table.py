"""The table of shared rules, and the decorator that fills it. Keyed by name: no primitive need be imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyax_kernels.lowering import Inline, Kernels, Lowering, WhyNot, always

RULES: dict[str, Lowering] = {
    name: Inline(param)
    for name, param in (
        ("pjit", "jaxpr"),
        ("closed_call", "call_jaxpr"),
        ("core_call", "call_jaxpr"),
        ("remat", "jaxpr"),
        ("checkpoint", "jaxpr"),
        ("custom_jvp_call", "call_jaxpr"),
        ("custom_vjp_call", "call_jaxpr"),
        ("custom_lin", "call_jaxpr"),
    )
}

Build = Callable[..., Any]


def kernels(*names: str, why_not: WhyNot = always, aliases: bool = False, each: bool = False) -> Callable[[Build], Build]:
    """Decorator: the function is the shared rule of the primitives ``names``."""

    def register(build: Build) -> Build:
        for name in names:
            RULES[name] = Kernels(build, why_not, aliases=aliases, each=each)
        return build

    return register
