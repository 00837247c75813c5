"""How a primitive runs: this module is what the entry point in pyproject.toml names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polyax.backend import Backend, hookimpl

polyax_requires = ">=1,<2"


@hookimpl
def polyax_lowerings(backend: Backend) -> Mapping[Any, Any] | None:
    """Asked once for each backend in use; those that aren't made of kernels are none of our business."""
    from polyax.lax import logistic_p
    from polyax_kernels.api.host import KernelBackend

    return {logistic_p: rule()} if isinstance(backend, KernelBackend) else None


def rule() -> Any:
    from polyax_kernels.api.lowerings import Kernels

    return Kernels(build, why_not)


def why_not(avals: Sequence[Any], params: Mapping[str, Any]) -> str | None:
    """Asked for each use: a reason leaves it to the next rule, and is what an error would show."""
    return None if avals[0].dtype.kind == "f" else f"it is no formula for {avals[0].dtype}"


def build(out: Any, x: Any, **params: Any) -> Any:
    """The result at the point ``out.i``, as an expression."""
    from polyax_kernels.api.lowerings import op

    return op("tanh", x.at(out.i) * 0.5) * 0.5 + 0.5
