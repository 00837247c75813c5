"""Pytrees under short names, as in ``jax.tree``. Re-exports only."""

from polyax.trace.paths import (
    tree_broadcast as broadcast,
    tree_flatten_with_path as flatten_with_path,
    tree_leaves_with_path as leaves_with_path,
    tree_map_with_path as map_with_path,
)
from polyax.trace.tree import (
    tree_all as all,
    tree_flatten as flatten,
    tree_leaves as leaves,
    tree_map as map,
    tree_reduce as reduce,
    tree_structure as structure,
    tree_transpose as transpose,
    tree_unflatten as unflatten,
)
