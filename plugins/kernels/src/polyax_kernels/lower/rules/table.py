"""The table of shared rules, and the decorator that fills it. Keyed by name: no primitive need be imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyax.runtime.contract.hooks import WhyNot
from polyax_kernels.lower.control import CONTROL
from polyax_kernels.lower.lowering import Kernels, Replace, always

RULES: dict[str, Any] = {
    "jit": Replace(lambda _, jaxpr, **__: jaxpr),
    "remat2": Replace(lambda _, jaxpr, **__: jaxpr, apart=True),
    "custom_jvp_call": Replace(lambda _, call_jaxpr, **__: call_jaxpr),
    "custom_vjp_call": Replace(lambda _, call_jaxpr, **__: call_jaxpr),
    "custom_vmap_call": Replace(lambda _, call_jaxpr, **__: call_jaxpr),
    "remat_opt": Replace(lambda _, forward, **__: forward),
    "linear_call": Replace(lambda _, callee, **__: callee),
    **CONTROL,
}

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
