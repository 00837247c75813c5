"""``polyax.experimental.compute_on``: on what part of a device to compute.

Which part does the work, here the device alone decides: what is asked for is checked, and where results are to be is
kept to.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

from polyax.runtime.arrays.placing import device_put

__all__ = ["compute_on", "compute_on2"]

_TYPES = ("device_host", "device", "tpu_sparsecore")


def _check(compute_type: Any) -> None:
    if not isinstance(compute_type, str):
        raise TypeError("`compute_on`'s compute_type argument must be a string.")
    if compute_type not in _TYPES and not compute_type.startswith("gpu_stream:"):
        raise ValueError(
            f"Invalid compute type {compute_type}. Current supported values are `device_host`, `device`, "
            "`tpu_sparsecore`, and `gpu_stream:#`."
        )


@contextmanager
def compute_on(compute_type: str) -> Generator[None]:
    """A wish for what is computed within it, or by a function that it decorates: ``"device_host"``, ``"device"``,
    ``"tpu_sparsecore"`` or ``"gpu_stream:3"``. Values don't depend on it, and devices here know one way alone.

    Raises:
      TypeError: ``compute_type`` is no string.
      ValueError: there is no such type.

    >>> import polyax.numpy as jnp
    >>> with compute_on("device_host"):
    ...     print(jnp.ones(2) + 1)
    [2. 2.]
    """
    _check(compute_type)
    yield


def compute_on2(
    f: Callable[..., Any] | None = None,
    *,
    compute_type: str,
    out_memory_spaces: Any,
    compiler_options: Any = None,
) -> Callable[..., Any]:
    """``f``, with its results in these memories.

    Args:
      f: a function of pytrees of arrays; without it, a decorator is returned.
      compute_type: as for ``compute_on``.
      out_memory_spaces: ``polyax.memory.Space``, in a tree that that of the results begins with.
      compiler_options: those of XLA, which change nothing here.

    Raises:
      TypeError, ValueError: as ``compute_on``; or the tree doesn't fit.
    """
    _check(compute_type)
    if f is None:
        return partial(
            compute_on2,
            compute_type=compute_type,
            out_memory_spaces=out_memory_spaces,
            compiler_options=compiler_options,
        )

    @wraps(f)
    def computed(*args: Any) -> Any:
        return device_put(f(*args), out_memory_spaces)

    return computed
