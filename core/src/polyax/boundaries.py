"""Makes the library's public functions boundaries: an error that leaves one ends at the user's line.

Done from outside, once, so that no function of the library says it. Must not know what the functions do.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from polyax import lax, nn, numpy, random
from polyax.runtime.errors import api_boundary

_guarded: dict[Callable[..., Any], Callable[..., Any]] = {}  # so that names of one function stay names of one function
_done: set[Callable[..., Any]] = set()


def guard(module: ModuleType) -> None:
    """Replaces the public functions of ``module`` by boundaries around them."""
    for name, value in list(vars(module).items()):
        own = isinstance(value, FunctionType) and value.__module__.startswith("polyax.")
        if own and not name.startswith("_") and value not in _done:
            if value not in _guarded:
                _guarded[value] = api_boundary(value)
                _done.add(_guarded[value])
            setattr(module, name, _guarded[value])


for _module in (lax, nn, nn.initializers, numpy, random):
    guard(_module)
