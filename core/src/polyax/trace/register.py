"""Registration of pytree nodes: classes, dataclasses, static data."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from polyax.trace.nodes import GetAttrKey, Node, default_registry

C = TypeVar("C", bound=type)


def register_pytree_node(
    nodetype: Any,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Makes ``nodetype`` a pytree node: ``flatten_func(x) -> (children, aux)``, ``unflatten_func(aux, children)``.

    ``aux`` is static: it is compared when structures are, and must be hashable to go into ``jit``.

    Raises:
      ValueError: the type is registered already.
    """
    if not isinstance(nodetype, type) or not callable(flatten_func) or not callable(unflatten_func):
        raise TypeError(
            "register_pytree_node takes a type and two functions, got "
            f"{nodetype!r}, {flatten_func!r}, {unflatten_func!r}"
        )
    keys = None
    if flatten_with_keys_func is not None:
        keys = lambda x, _: [k for k, _ in flatten_with_keys_func(x)[0]]
    default_registry.add(nodetype, Node(flatten_func, unflatten_func, keys))


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Like ``register_pytree_node`` with children given as ``(key, child)`` pairs."""

    def flatten(x: Any) -> tuple[Iterable[Any], Any]:
        pairs, aux = flatten_with_keys(x)
        return [c for _, c in pairs], aux

    register_pytree_node(nodetype, flatten_func or flatten, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: C) -> C:
    """Decorator for classes with ``tree_flatten(self)`` and ``tree_unflatten(cls, aux, children)``.

    >>> import polyax
    >>> @register_pytree_node_class
    ... class Scaled:
    ...     def __init__(self, x, by):
    ...         self.x, self.by = x, by
    ...     def tree_flatten(self):
    ...         return (self.x,), self.by
    ...     @classmethod
    ...     def tree_unflatten(cls, by, children):
    ...         return cls(*children, by)
    >>> polyax.tree.structure(Scaled(1.0, 'kilo'))
    PyTreeDef(CustomNode(Scaled[kilo], [*]))
    """
    register_pytree_node(cls, operator.methodcaller("tree_flatten"), cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: C) -> C:
    """Decorator for classes with ``tree_flatten_with_keys(self)`` and ``tree_unflatten(cls, aux, children)``."""
    flatten = operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    with_keys = operator.methodcaller("tree_flatten_with_keys")
    register_pytree_with_keys(cls, with_keys, cls.tree_unflatten, flatten)
    return cls


def register_static(cls: C) -> C:
    """Decorator: instances are structure, without leaves. They must be hashable."""
    register_pytree_node(cls, lambda x: ((), x), lambda x, _: x)
    return cls


def static(**kwargs: Any) -> Any:
    """A field of a dataclass that ``register_dataclass`` takes as static; arguments as for ``dataclasses.field``.

    >>> import polyax
    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     w: object
    ...     name: str = static(default='dense')
    >>> polyax.tree.structure(Layer(1.0))
    PyTreeDef(CustomNode(Layer[('dense',)], [*]))
    """
    metadata = {**(kwargs.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(metadata=metadata, **kwargs)


def register_dataclass(
    nodetype: C,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> C:
    """Makes a dataclass a node: ``data_fields`` are children, ``meta_fields`` are static, ``drop_fields`` are left out.

    Without the first two, a dataclass's own fields are taken; those made with ``static`` are the static ones.

    Raises:
      TypeError: they are needed, since it is no dataclass.
      ValueError: fields are missing, too many or in both, or the type is registered already.

    >>> from dataclasses import dataclass
    >>> import polyax
    >>> @register_dataclass
    ... @dataclass
    ... class Line:
    ...     slope: float
    ...     intercept: float
    >>> polyax.tree.map(lambda x: 2 * x, Line(1.0, 3.0)).intercept
    6.0
    """
    data, meta = _fields(nodetype, data_fields, meta_fields, drop_fields)

    def flatten(x: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return [getattr(x, n) for n in data], tuple([getattr(x, n) for n in meta])

    def unflatten(aux: Any, children: Iterable[Any]) -> Any:
        return nodetype(**dict(zip(data, children)), **dict(zip(meta, aux)))

    keys = [GetAttrKey(n) for n in data]
    default_registry.add(nodetype, Node(flatten, unflatten, lambda *_: keys), "custom dataclass")
    return nodetype


def _fields(kind: type, data: Any, meta: Any, drop: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if (data is None) != (meta is None):
        raise TypeError(
            "register_dataclass: data_fields and meta_fields must both be specified when either is specified. "
            f"Got data_fields={data} meta_fields={meta}."
        )
    if data is not None:
        if both := {*data} & {*meta}:
            raise ValueError(
                f"data_fields and meta_fields must not overlap. Overlapping fields: {_set(both)} of {kind.__name__}."
            )
        _check_fields(kind, {*data, *meta}, set(drop))
        return tuple(data), tuple(meta)
    if not dataclasses.is_dataclass(kind):
        raise TypeError(
            "register_dataclass: data_fields and meta_fields are required when nodetype is not a dataclass. "
            f"Got nodetype={kind}."
        )
    fields = [f for f in dataclasses.fields(kind) if f.init and f.name not in drop]
    fixed = tuple(f.name for f in fields if f.metadata.get("static", False))
    return tuple(f.name for f in fields if f.name not in fixed), fixed


def _check_fields(kind: type, given: set[str], drop: set[str]) -> None:
    if not dataclasses.is_dataclass(kind):
        return
    wanted = {f.name for f in dataclasses.fields(kind) if f.init} - drop
    if wanted != given:
        missing, unknown = wanted - given, given - wanted
        what = f"Missing fields: {_set(missing)}. Add them to drop_fields to suppress this error. " if missing else ""
        what += f"Unexpected fields: {_set(unknown)}. " if unknown else ""
        raise ValueError(
            "data_fields and meta_fields must include all dataclass fields with ``init=True`` and only them. "
            f"{what}The dataclass is {kind.__name__}."
        )


def _set(names: set[str]) -> str:
    return f"{{{', '.join(map(repr, sorted(names)))}}}"
