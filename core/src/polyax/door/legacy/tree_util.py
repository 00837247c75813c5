"""``jax._src.tree_util``: which types are nodes of trees."""

from __future__ import annotations

from polyax.trace.nodes import default_registry
from polyax.trace.nodes import flatten_one_level as flatten_one_level

_registry = default_registry._nodes
