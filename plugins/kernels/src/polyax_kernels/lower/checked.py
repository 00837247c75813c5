"""What plugins' lowerings give, looked at before it is taken: counts, classes and types.

Knows no primitive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.errors import PluginError
from polyax.ir.jaxpr import ClosedJaxpr
from polyax_kernels.ir.expr import Expr
from polyax_kernels.lower.lowering import Update


def check_built(result: Any, outs: Sequence[ShapedArray], operands: int) -> None:
    """Of ``Kernels.build``: an expression for each result, of its dtype; or updates, of one of the ``operands``.

    Raises:
      PluginError: it is something else.
    """
    updates: list[Any] = result if isinstance(result, list) else [result]
    if updates and _all(updates, Update):
        return _check_updates(updates, operands)
    bodies: tuple[Any, ...] = result if isinstance(result, tuple) else (result,)
    if not _all(bodies, Expr):
        raise PluginError(f"build of the lowering gave {result!r}, not an expression, a tuple of them, or Updates")
    if len(bodies) != len(outs):
        raise PluginError(f"build of the lowering gave {len(bodies)} expressions, and there are {len(outs)} results")
    for n, (body, aval) in enumerate(zip(bodies, outs, strict=True)):
        if body.dtype != aval.dtype:
            raise PluginError(
                f"build of the lowering gave an expression of {body.dtype} for result {n}, which is {aval}; "
                "`polyax_kernels.ir.expr.cast` converts it"
            )


def _check_updates(updates: Sequence[Update], operands: int) -> None:
    for update in updates:
        if update.updates is not None and not 0 <= update.updates < operands:
            raise PluginError(f"build of the lowering updates operand {update.updates}, and there are {operands}")
        if not any(stage.stores for stage in update.stages):
            raise PluginError("build of the lowering gave an Update that stores nothing")


def _all(values: Sequence[Any], kind: type) -> bool:
    return all(isinstance(x, kind) for x in values)


def check_program(made: Any, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> None:
    """Of ``Replace.program``: a program with the inputs and results of the equation that it replaces.

    Raises:
      PluginError: it is something else.
    """
    if not isinstance(made, ClosedJaxpr):
        raise PluginError(f"program of the lowering gave {made!r}, not a ClosedJaxpr")
    for what, found, wanted in (("takes", made.in_avals, ins), ("gives", made.out_avals, outs)):
        if [(a.shape, a.dtype) for a in found] != [(a.shape, a.dtype) for a in wanted]:
            types = [", ".join(map(str, avals)) or "nothing" for avals in (found, wanted)]
            raise PluginError(f"program of the lowering {what} {types[0]}; it stands for an equation with {types[1]}")
