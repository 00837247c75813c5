"""One rule for backends that somebody else wrote: ``erf`` as a short formula that every compiler vectorises.

Abramowitz and Stegun, "Handbook of Mathematical Functions", 7.1.28. Its error, at most 2e-6 in float32, is what
it costs; wider floats keep their own rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polyax

POLYNOMIAL = (0.0000430638, 0.0002765672, 0.0001520143, 0.0092705272, 0.0422820123, 0.0705230784, 1.0)


@polyax.hookimpl
def polyax_lowerings(backend: Any) -> Mapping[Any, Any] | None:
    """Asked once for each backend in use; those that aren't made of kernels are none of our business."""
    from polyax.lax import erf_p
    from polyax_kernels.api.host import KernelBackend
    from polyax_kernels.api.lowerings import Kernels

    return {erf_p: Kernels(erf, why_not)} if isinstance(backend, KernelBackend) else None


def why_not(avals: Sequence[Any], params: Mapping[str, Any]) -> str | None:
    """Asked for each use: a reason leaves it to the next rule, and is what an error would show."""
    return None if avals[0].dtype.name == "float32" else f"the formula is too short for {avals[0].dtype}"


def erf(out: Any, x: Any) -> Any:
    """The result at the point ``out.i``: ``1 - 1 / p(|x|)**16`` with the sign of ``x``."""
    from polyax_kernels.api.lowerings import const, op, where

    value = x.at(out.i)
    size, p = op("abs", value), const(0.0, value.dtype)
    for coefficient in POLYNOMIAL:
        p = p * size + coefficient
    for _ in range(4):
        p = p * p
    return where(value < 0, 1.0 / p - 1.0, 1.0 - 1.0 / p)
