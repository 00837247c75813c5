"""``check``: the primitive that raises an error which a program may have met. ``checkify`` makes it a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.experimental.checkify.failures import JaxRuntimeError
from polyax.ir.aval import ShapedArray
from polyax.ir.effects import Effects
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.basis import match_axis
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten

check_p = Primitive("check", multiple_results=True)
"""``check[debug err_tree] *leaves``: raises the error whose leaves these are, if it is one. With ``debug`` only
``checkify`` heeds it."""
check_p.never("transpose", "errors are no linear results")
check_p.never("factors", "errors aren't cut")


def raise_if(error: Any, debug: bool = False) -> None:
    """Raises an ``Error``, if there is one, where its values are known; else records that."""
    leaves, tree = tree_flatten(error._single())
    check_p.bind(*leaves, err_tree=tree, debug=debug)


@def_rule(check_p, "impl")
def _impl(*leaves: Any, err_tree: PyTreeDef, debug: bool) -> list[Any]:
    exception = None if debug else tree_unflatten(err_tree, leaves).get_exception()
    if exception is not None:
        raise JaxRuntimeError(str(exception)) from exception
    return []


@def_rule(check_p, "abstract_eval")
def _abstract_eval(*leaves: ShapedArray, err_tree: PyTreeDef, debug: bool) -> tuple[list[ShapedArray], Effects]:
    return [], frozenset(tree_unflatten(err_tree, leaves)._pred)


@def_rule(check_p, "decompose")
def _decompose(*_: Any, err_tree: PyTreeDef, debug: bool) -> list[Any]:
    if debug:
        return []
    raise ValueError(
        "Cannot abstractly evaluate a checkify.check which was not functionalized. This probably means you tried to "
        "stage (jit/scan/pmap/...) a `check` without functionalizing it through `checkify.checkify`."
    )


@def_rule(check_p, "batch")
def _batch(axis: Any, leaves: Sequence[Any], dims: Sequence[int | None], *, err_tree: PyTreeDef, debug: bool) -> Any:
    mapped = [match_axis(axis, d, 0, x) for x, d in zip(leaves, dims, strict=True)]
    raise_if(tree_unflatten(err_tree, mapped), debug)
    return [], []


@def_rule(check_p, "jvp")
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    """Primals are checked, not tangents."""
    return check_p.bind(*primals, **params), []


@def_rule(check_p, "pretty")
def _pretty(*, err_tree: PyTreeDef, debug: bool) -> dict[str, Any]:
    return {"debug": debug}
