"""Geometry, as ``jax.scipy.spatial`` has it. Re-exports only, each loaded when it is used."""

from typing import Any as _Any

from polyax import late as _late

_LATE = _late.submodules(__name__, "transform")


def __getattr__(name: str) -> _Any:
    return _late.load(__name__, _LATE, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
