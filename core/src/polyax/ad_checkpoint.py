"""``polyax.ad_checkpoint``: computing again instead of keeping, in backward passes. Re-exports only."""

from typing import Any as _Any

from polyax import late as _late
from polyax.control.calls.remat import checkpoint as checkpoint
from polyax.control.inner.policies import checkpoint_name as checkpoint_name
from polyax.control.inner.policies import checkpoint_policies as checkpoint_policies
from polyax.control.inner.residuals import print_saved_residuals as print_saved_residuals
from polyax.control.inner.residuals import saved_residuals as saved_residuals

_LATE = _late.names_of("polyax.control.inner.answers", "Offloadable", "Recompute", "Saveable")


def __getattr__(name: str) -> _Any:
    return _late.load(__name__, _LATE, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
