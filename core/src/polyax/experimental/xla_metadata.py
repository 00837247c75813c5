"""``polyax.experimental.xla_metadata``: notes for XLA, beside the operations of a program.

XLA isn't used here and nothing else reads them: programs that make such notes run as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from polyax.numpy.promotion import as_array
from polyax.trace.tree import tree_map

__all__ = ["set_xla_metadata"]


class _Noted:
    """A function under a note; its attributes are its own (``lower``, ``trace`` of one that is jitted)."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self._fun = fun
        update_wrapper(self, fun)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._fun(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fun, name)


class XlaMetadataContextManager:
    """A context in which operations have a note; also a decorator of functions."""

    def __init__(self, updates: dict[str, Any]) -> None:
        self.updates = updates

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return _Noted(f)


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Notes the names and values in ``kwargs`` beside the operations that make the arrays ``x``, which are returned;
    without ``x``, beside all operations in the context, or the decorated function. No compiler here reads notes.

    >>> import polyax.numpy as jnp
    >>> with set_xla_metadata(inline="false"):
    ...     print(set_xla_metadata(jnp.ones(2), kind="a"))
    [1. 1.]
    """
    return XlaMetadataContextManager(kwargs) if x is None else tree_map(as_array, x)
