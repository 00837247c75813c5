"""``polyax.ad_checkpoint``: computing again instead of keeping, in backward passes. Re-exports only."""

from polyax.control.policies import checkpoint_name as checkpoint_name
from polyax.control.policies import checkpoint_policies as checkpoint_policies
from polyax.control.remat import checkpoint as checkpoint
