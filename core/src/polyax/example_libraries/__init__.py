"""``polyax.example_libraries``: a small library of layers and one of optimizers, to read and to start from."""

from typing import Any

from polyax import late as _late

_LATE = _late.submodules("polyax.example_libraries", "optimizers", "stax")


def __getattr__(name: str) -> Any:
    return _late.load(__name__, _LATE, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
