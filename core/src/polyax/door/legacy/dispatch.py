"""``jax._src.dispatch``: primitives run on their own, and waiting for what programs do besides computing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from polyax.api.jit import jit
from polyax.extend.core import Primitive
from polyax.runtime.arrays.devices import effects_barrier as wait_for_tokens

__all__ = ["apply_primitive", "wait_for_tokens"]


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """``prim`` of the arrays ``args``, compiled by its lowering: what authors of primitives give to ``def_impl``.

    Raises:
      NotImplementedError: there is no lowering.
    """
    return _compiled(prim, tuple(params.items()))(*args)


@functools.lru_cache(maxsize=512)
def _compiled(prim: Primitive, params: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    return jit(functools.partial(prim.bind, **dict(params)))


apply_primitive.compiles = True  # pyright: ignore[reportFunctionMemberAccess]
