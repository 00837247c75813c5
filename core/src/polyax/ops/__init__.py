"""First-order primitives by family, each with all its rules on one screen; and, as ``jax.ops``, segment reductions."""

from polyax.ops.segments import segment_max as segment_max
from polyax.ops.segments import segment_min as segment_min
from polyax.ops.segments import segment_prod as segment_prod
from polyax.ops.segments import segment_sum as segment_sum
