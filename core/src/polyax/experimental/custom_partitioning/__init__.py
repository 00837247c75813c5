"""``polyax.experimental.custom_partitioning``: functions that cut themselves. Re-exports only."""

from polyax.experimental.custom_partitioning.function import custom_partitioning as custom_partitioning
from polyax.experimental.custom_partitioning.function import custom_partitioning_p as custom_partitioning_p
from polyax.experimental.custom_partitioning.mappings import BATCHING as BATCHING
from polyax.experimental.custom_partitioning.mappings import ArrayMapping as ArrayMapping
from polyax.experimental.custom_partitioning.mappings import CompoundFactor as CompoundFactor
from polyax.experimental.custom_partitioning.mappings import SdyShardingRule as SdyShardingRule
