"""``polyax.experimental.shard``: the name that functions of explicit sharding had first. Re-exports only."""

from polyax.api.resharding import auto_axes as auto_axes
from polyax.api.resharding import explicit_axes as explicit_axes
from polyax.api.resharding import reshard as reshard
