"""Checks of what users' functions take and give in control flow: both sides of a mismatch, by name and type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.control.inner.programs import derived, run
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of, same_type
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ops.basis import convert
from polyax.trace.paths import keystr, tree_leaves_with_path
from polyax.trace.tree import PyTreeDef, tree_unflatten
from polyax.trace.varying import in_order
from polyax.transforms.memo import memoize_by_jaxpr


def check_scalar(what: str, x: Any) -> ShapedArray:
    """The type of a predicate or index.

    Raises:
      TypeError: it is no scalar number.
    """
    try:
        aval = aval_of(x)
    except TypeError:
        raise TypeError(f"{what} must be a scalar number, got {x!r} of type {type(x).__name__}.") from None
    if aval.shape:
        raise TypeError(f"{what} must be a scalar, got {aval}.")
    return aval


def check_predicate(what: str, x: Any) -> ShapedArray:
    aval = check_scalar(what, x)
    if not (aval.dtype == bool or dtypes.is_integer(aval.dtype) or dtypes.is_float(aval.dtype)):
        raise TypeError(f"{what} type must be either boolean or number, got {aval}.")
    return aval


def check_same(
    what: str,
    names: tuple[str, str],
    trees: tuple[PyTreeDef, PyTreeDef],
    avals: tuple[Sequence[ShapedArray], Sequence[ShapedArray]],
    culprit: str,
) -> None:
    """Both of ``names`` must have one structure and types that are equal up to weakness.

    Raises:
      TypeError: with the components that differ.
    """
    if trees[0] != trees[1]:
        raise TypeError(
            f"{what} have the same pytree structure, but they differ:\n"
            f"  {names[0]} has the structure {trees[0]},\n  {names[1]} has the structure {trees[1]}.\n"
            f"Revise {culprit} so that both have the same structure."
        )
    paths = [keystr(path) for path, _ in tree_leaves_with_path(tree_unflatten(trees[0], list(avals[0])))]
    differing = [
        f"  {names[0]}{path} has type {a}, but {names[1]}{path} has type {b}{_difference(a, b)}"
        for path, a, b in zip(paths, *avals, strict=True)
        if not same_type(a, b) or a.vma != b.vma or a.sharding != b.sharding
    ]
    if differing:
        raise TypeError(
            f"{what} have equal types, but they differ:\n" + ",\n".join(differing) + ".\n"
            f"{_casts(names, avals)}Revise {culprit} so that all types match."
        )


def _difference(a: ShapedArray, b: ShapedArray) -> str:
    parts = [f"the {name}s do not match" for name in ("dtype", "shape") if getattr(a, name) != getattr(b, name)]
    if a.vma != b.vma:
        parts.append("the manual axis types do not match")
    parts += ["the shardings do not match"] if a.sharding != b.sharding else []
    return ", so " + " and ".join(parts)


def _casts(names: tuple[str, str], avals: tuple[Sequence[ShapedArray], Sequence[ShapedArray]]) -> str:
    """How to make them vary along the same axes of a mesh."""
    text = ""
    for a, b in zip(*avals, strict=True):
        for which, missing in ((names[0], b.vma - a.vma), (names[1], a.vma - b.vma)):
            if missing:
                value = "the initial carry value" if which.startswith("the input carry") else which
                text += (
                    f"This might be fixed by applying `polyax.lax.pcast(..., {in_order(missing)}, to='varying')` to "
                    f"{value}.\n"
                )
    return text


def weaknesses(avals: Sequence[ShapedArray]) -> tuple[bool, ...]:
    return tuple(a.weak_type for a in avals)


@memoize_by_jaxpr
def with_weak_types(program: ClosedJaxpr, weak: tuple[bool, ...]) -> ClosedJaxpr:
    """The program whose outputs are weakly typed as ``weak`` says."""
    if weak == weaknesses(program.out_avals):
        return program

    def fun(*args: Any) -> list[Any]:
        return [convert(x, a.dtype, w) for x, a, w in zip(run(program, args), program.out_avals, weak, strict=True)]

    return derived(program, fun, program.in_avals)
