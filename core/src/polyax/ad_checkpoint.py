"""``polyax.ad_checkpoint``: computing again instead of keeping, in backward passes. Re-exports only."""

from polyax.control.calls.remat import checkpoint as checkpoint
from polyax.control.inner.policies import Offloadable as Offloadable
from polyax.control.inner.policies import Recompute as Recompute
from polyax.control.inner.policies import Saveable as Saveable
from polyax.control.inner.policies import checkpoint_name as checkpoint_name
from polyax.control.inner.policies import checkpoint_policies as checkpoint_policies
from polyax.control.inner.residuals import print_saved_residuals as print_saved_residuals
from polyax.control.inner.residuals import saved_residuals as saved_residuals
