"""``polyax.experimental``: what JAX keeps in its ``experimental``. Re-exports only."""

from typing import Any as _Any

from polyax import late as _late
from polyax.runtime.running.callbacks import io_callback as io_callback

_LATE = _late.submodules(
    __name__,
    *(
        "buffer_callback",
        "compilation_cache",
        "custom_partitioning",
        "jet",
        "ode",
        "pallas",
        "random",
        "sparse",
        "topologies",
    ),
)


def __getattr__(name: str) -> _Any:
    return _late.load(__name__, _LATE, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
