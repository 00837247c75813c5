"""Where errors leave polyax: every public function of the library shows the user's frames alone in tracebacks.

Applied once, to the public names; library code calls the functions themselves and pays nothing.
"""

from __future__ import annotations

from types import FunctionType, ModuleType

from polyax import api, debug, lax, nn, numpy, random
from polyax.runtime.contract.tracebacks import api_boundary


def guard(module: ModuleType) -> None:
    """Replaces the public functions of ``module`` by ones that filter tracebacks."""
    for name, value in vars(module).items():
        if isinstance(value, FunctionType) and not name.startswith("_"):
            guarded = api_boundary(value)
            guarded.__module__, guarded.__qualname__ = module.__name__, name  # where pickle finds it
            setattr(module, name, guarded)


for _module in (api, debug, lax, nn, numpy, random):
    guard(_module)
