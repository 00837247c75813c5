"""Pytrees under short names, as in ``jax.tree``. Re-exports only."""

from polyax.trace.paths import tree_broadcast as broadcast
from polyax.trace.paths import tree_flatten_with_path as flatten_with_path
from polyax.trace.paths import tree_leaves_with_path as leaves_with_path
from polyax.trace.paths import tree_map_with_path as map_with_path
from polyax.trace.register import static as static
from polyax.trace.tree import tree_all as all
from polyax.trace.tree import tree_flatten as flatten
from polyax.trace.tree import tree_leaves as leaves
from polyax.trace.tree import tree_map as map
from polyax.trace.tree import tree_reduce as reduce
from polyax.trace.tree import tree_reduce_associative as reduce_associative
from polyax.trace.tree import tree_structure as structure
from polyax.trace.tree import tree_transpose as transpose
from polyax.trace.tree import tree_unflatten as unflatten
