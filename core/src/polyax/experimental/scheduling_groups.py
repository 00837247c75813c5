"""``polyax.experimental.scheduling_groups``: functions whose operations belong together.

Each stays a program of its own in the program that calls it. The order of kernels follows from what they need.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from polyax.api import jit

__all__ = ["scheduling_group", "xla_metadata_call"]


def scheduling_group(name: str) -> Callable[..., Any]:
    """A decorator of functions whose operations are to be scheduled together, under a name.

    Raises:
      NotImplementedError: the name is no string.

    >>> import polyax.numpy as jnp
    >>> print(scheduling_group(name="stage")(lambda x: 2 * x + 1)(jnp.arange(3)))
    [1 3 5]
    """
    return xla_metadata_call(scheduling_group=name)


def xla_metadata_call(f: Callable[..., Any] | None = None, **meta: Any) -> Callable[..., Any]:
    """``f`` as a program of its own, with notes for a compiler, which are strings; without it, a decorator."""
    if f is None:
        return partial(xla_metadata_call, **meta)
    for key, value in meta.items():
        if not isinstance(value, str):
            raise NotImplementedError(f"the note {key}={value!r} is of {type(value)}, and must be a string")
    return wraps(f)(jit(f))
