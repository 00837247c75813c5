"""The table of shared rules, and the decorator that fills it. Keyed by name: no primitive need be imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyax.control.solving import solver
from polyax.control.spmd import on_one_device
from polyax.ir.jaxpr import ClosedJaxpr
from polyax_kernels.lower.control import CONTROL
from polyax_kernels.lower.lowering import Inline, Kernels, WhyNot, always


def _on_one_device(*, jaxpr: ClosedJaxpr, axes: Any, in_specs: Any, out_specs: Any, **_: Any) -> ClosedJaxpr:
    """Within another program, all parts are computed where that runs."""
    return on_one_device(jaxpr, axes, in_specs, out_specs)


RULES: dict[str, Any] = {
    "pjit": Inline("jaxpr"),
    "checkpoint": Inline("jaxpr", apart=True),
    "custom_jvp_call": Inline("call_jaxpr"),
    "custom_vjp_call": Inline("call_jaxpr"),
    "custom_vmap_call": Inline("call"),
    "remat_opt": Inline("forward"),
    "linear_call": Inline("callee"),
    "custom_linear_solve": Inline(solver),
    "shard_map": Inline(_on_one_device),
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
