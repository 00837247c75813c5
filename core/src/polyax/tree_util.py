"""Pytrees, as in ``jax.tree_util``. Re-exports only."""

from polyax.trace.paths import (
    KeyPath as KeyPath,
)
from polyax.trace.paths import (
    keystr as keystr,
)
from polyax.trace.paths import (
    tree_broadcast as tree_broadcast,
)
from polyax.trace.paths import (
    tree_flatten_with_path as tree_flatten_with_path,
)
from polyax.trace.paths import (
    tree_leaves_with_path as tree_leaves_with_path,
)
from polyax.trace.paths import (
    tree_map_with_path as tree_map_with_path,
)
from polyax.trace.tree import (
    DictKey as DictKey,
)
from polyax.trace.tree import (
    FlattenedIndexKey as FlattenedIndexKey,
)
from polyax.trace.tree import (
    GetAttrKey as GetAttrKey,
)
from polyax.trace.tree import (
    Partial as Partial,
)
from polyax.trace.tree import (
    PyTreeDef as PyTreeDef,
)
from polyax.trace.tree import (
    SequenceKey as SequenceKey,
)
from polyax.trace.tree import (
    all_leaves as all_leaves,
)
from polyax.trace.tree import (
    register_dataclass as register_dataclass,
)
from polyax.trace.tree import (
    register_pytree_node as register_pytree_node,
)
from polyax.trace.tree import (
    register_pytree_node_class as register_pytree_node_class,
)
from polyax.trace.tree import (
    register_pytree_with_keys as register_pytree_with_keys,
)
from polyax.trace.tree import (
    register_pytree_with_keys_class as register_pytree_with_keys_class,
)
from polyax.trace.tree import (
    register_static as register_static,
)
from polyax.trace.tree import (
    tree_all as tree_all,
)
from polyax.trace.tree import (
    tree_flatten as tree_flatten,
)
from polyax.trace.tree import (
    tree_leaves as tree_leaves,
)
from polyax.trace.tree import (
    tree_map as tree_map,
)
from polyax.trace.tree import (
    tree_reduce as tree_reduce,
)
from polyax.trace.tree import (
    tree_structure as tree_structure,
)
from polyax.trace.tree import (
    tree_transpose as tree_transpose,
)
from polyax.trace.tree import (
    tree_unflatten as tree_unflatten,
)
from polyax.trace.tree import (
    treedef_children as treedef_children,
)
from polyax.trace.tree import (
    treedef_is_leaf as treedef_is_leaf,
)
from polyax.trace.tree import (
    treedef_tuple as treedef_tuple,
)
