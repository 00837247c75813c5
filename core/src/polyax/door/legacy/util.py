"""``jax._src.util``: small functions that libraries borrow."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from polyax.extend.core import safe_map as safe_map
from polyax.extend.core import safe_zip as safe_zip

wraps = functools.wraps
weakref_lru_cache = functools.lru_cache


def cache(max_size: int | None = 4096, **_: Any) -> Callable[..., Any]:
    """Decorator: remembers results."""
    return functools.lru_cache(max_size)


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Firsts and seconds."""
    listed = list(pairs)
    return tuple(x for x, _ in listed), tuple(y for _, y in listed)


def split_list(args: Sequence[Any], ns: Sequence[int]) -> list[list[Any]]:
    """The first ``ns[0]``, then the next ``ns[1]``, ..., and the rest."""
    lists, left = [], list(args)
    for n in ns:
        lists.append(left[:n])
        left = left[n:]
    return [*lists, left]
