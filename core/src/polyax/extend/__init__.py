"""``polyax.extend``: what programs need that add primitives or interpret programs. Re-exports only."""

from typing import Any

from polyax import late as _late
from polyax.extend import core as core

_LATE = _late.submodules("polyax.extend", "backend", "linear_util", "random", "source_info_util")


def __getattr__(name: str) -> Any:
    return _late.load(__name__, _LATE, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
