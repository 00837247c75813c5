"""``polyax.extend.source_info_util``: which lines of users operations come from, and which files are no users'."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from polyax.ir.primitive import ambient
from polyax.ir.source import Source, register_internal, user_source

__all__ = ["current", "register_exclusion", "user_context"]


def register_exclusion(path: str) -> None:
    """Lines of files below ``path``, or of the file ``path``, are never told as the user's."""
    register_internal(path)


def current() -> Source | None:
    """The user's line that asks for what is traced now."""
    return ambient.source or user_source(ambient.scope)


@contextmanager
def user_context(c: Any, *, name_stack: Any = None) -> Generator[None]:
    """What is traced inside the block comes from the line of an equation, ``eqn.source_info.traceback``.

    Args:
      c: a line; None for those where it is asked for.
      name_stack: for compatibility: a line tells its scopes.

    >>> import polyax, polyax.numpy as jnp
    >>> (eqn,) = polyax.make_jaxpr(lambda x: jnp.sin(x))(1.0).eqns
    >>> with user_context(eqn.source_info.traceback):
    ...     current() == eqn.source_info
    True
    """
    before = ambient.source
    ambient.source = c if isinstance(c, Source) else None
    try:
        yield
    finally:
        ambient.source = before
