"""``polyax.interpreters``: where rules of primitives are registered, as in JAX. Re-exports only."""

from typing import Any

from polyax import late as _late
from polyax.interpreters import ad as ad
from polyax.interpreters import batching as batching

_LATE = _late.submodules("polyax.interpreters", "mlir", "partial_eval")


def __getattr__(name: str) -> Any:
    return _late.load(__name__, _LATE, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
