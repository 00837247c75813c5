"""``jax._src.api_util``: how decorators of libraries find out what ``static_argnums`` names, and the other way."""

from __future__ import annotations

import inspect
from collections.abc import Iterable


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: int | Iterable[int] | None, argnames: str | Iterable[str] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions and the names of arguments, of which one may be missing."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums or ())
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames or ())
    either = [(n, p.name) for n, p in enumerate(sig.parameters.values()) if p.kind is p.POSITIONAL_OR_KEYWORD]
    if argnums is None:
        numbers = tuple(n for n, name in either if name in names)
    if argnames is None:
        names = tuple(name for n, name in either if n in numbers)
    return numbers, names
