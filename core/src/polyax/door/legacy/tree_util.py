"""``jax._src.tree_util``: which types are nodes of trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from polyax.trace.nodes import default_registry
from polyax.trace.nodes import flatten_one_level as flatten_one_level


class RegistryEntry(NamedTuple):
    """How a type is taken apart into children and auxiliary data, and put together from these."""

    to_iter: Callable[[Any], tuple[Iterable[Any], Any]]
    from_iter: Callable[[Any, Any], Any]


class _Entries(Mapping[type, RegistryEntry]):
    """The registered types, those of later too."""

    def __getitem__(self, kind: type) -> RegistryEntry:
        node = default_registry._nodes[kind]
        return RegistryEntry(node.flatten, node.unflatten)

    def __iter__(self) -> Iterator[type]:
        return iter(default_registry._nodes)

    def __len__(self) -> int:
        return len(default_registry._nodes)


_registry = _Entries()
