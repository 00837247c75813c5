"""Symbolic shapes, as users write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.api.ahead import ShapeDtypeStruct
from polyax.api.arguments import shaped
from polyax.export.parsing import Parser
from polyax.export.scopes import SymbolicScope
from polyax.trace.paths import broadcast_prefix
from polyax.trace.tree import tree_flatten, tree_unflatten


def symbolic_shape(
    shape_spec: Any,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> Sequence[Any]:
    """A shape whose dimensions may be expressions of variables, for ``export``.

    Args:
      shape_spec: dimensions, separated by commas: integers, names of variables, sums, differences and products of them,
        powers (``a^2``), ``floordiv(a, b) mod(a, b) max(a, b) min(a, b)``; ``_`` and ``...`` stand for dimensions of
        ``like``. None is ``...``.
      constraints: what is known of the variables, as for ``SymbolicScope``.
      scope: what the variables belong to; a new one by default.
      like: a shape that placeholders are taken from, and that constants must agree with.

    Raises:
      ValueError: the text can't be read, or both ``scope`` and ``constraints`` are given.

    >>> symbolic_shape("2*b + 1, _", like=(None, 3))
    (2*b + 1, 3)
    """
    if shape_spec is not None and not isinstance(shape_spec, str):
        raise ValueError(f"polymorphic shape spec should be None or a string. Found {shape_spec!r}.")
    if scope is not None and constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    scope = SymbolicScope(constraints) if scope is None else scope
    return Parser("..." if shape_spec is None else shape_spec, repr(shape_spec), scope, like).shape()


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """Arguments for ``export``: the structure and the dtypes of ``args``, with symbolic shapes.

    Args:
      args: a pytree of arrays or ``ShapeDtypeStruct``.
      shapes_specs: texts as for ``symbolic_shape``: one for all, or a pytree that ``args`` begins with; None leaves
        shapes as they are.
      constraints, scope: as for ``symbolic_shape``.

    Raises:
      ValueError: a text can't be read or doesn't fit its argument, or the structures differ.

    >>> import numpy as np
    >>> symbolic_args_specs((np.ones((4, 3)), np.ones(3)), ("b, ...", None))
    (ShapeDtypeStruct(shape=(b, 3), dtype=float32), ShapeDtypeStruct(shape=(3,), dtype=float32))
    """
    if scope is not None and constraints:
        raise ValueError("Cannot use both `scope` and `constraints`")
    scope = SymbolicScope(constraints) if scope is None else scope
    leaves, tree = tree_flatten(args)
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    specs = broadcast_prefix(shapes_specs, args, is_leaf=lambda x: x is None)
    return tree_unflatten(tree, [_struct(x, spec, scope) for x, spec in zip(leaves, specs, strict=True)])


def _struct(x: Any, spec: Any, scope: SymbolicScope) -> ShapeDtypeStruct:
    known = x if isinstance(x, ShapeDtypeStruct) else shaped(x)
    return ShapeDtypeStruct(symbolic_shape(spec, like=known.shape, scope=scope), known.dtype)
