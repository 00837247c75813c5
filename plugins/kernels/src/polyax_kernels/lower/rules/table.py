"""The table of shared rules, and the decorator that fills it. Keyed by name: no primitive need be imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyax.control.solving import solver
from polyax.control.spmd import on_one_device
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.runtime.contract.hooks import WhyNot
from polyax_kernels.lower.control import CONTROL
from polyax_kernels.lower.lowering import Kernels, Replace, always


def _parameter(name: str) -> Callable[..., Any]:
    return lambda _, **params: params[name]


def _on_one_device(_: Any, *, jaxpr: ClosedJaxpr, axes: Any, in_specs: Any, out_specs: Any, **__: Any) -> ClosedJaxpr:
    """Within another program, all parts are computed where that runs."""
    return on_one_device(jaxpr, axes, in_specs, out_specs)


RULES: dict[str, Any] = {
    "pjit": Replace(_parameter("jaxpr")),
    "checkpoint": Replace(_parameter("jaxpr"), apart=True),
    "custom_jvp_call": Replace(_parameter("call_jaxpr")),
    "custom_vjp_call": Replace(_parameter("call_jaxpr")),
    "custom_vmap_call": Replace(_parameter("call")),
    "remat_opt": Replace(_parameter("forward")),
    "linear_call": Replace(_parameter("callee")),
    "custom_linear_solve": Replace(lambda _, **params: solver(**params)),
    "shard_map": Replace(_on_one_device),
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
