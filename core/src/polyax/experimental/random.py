"""``polyax.experimental.random``: a generator of random numbers that keeps account of what it has given by itself."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax import random as _random
from polyax import ref as _ref
from polyax.ir import dtypes
from polyax.ir.aval import aval_of, is_array_like
from polyax.ir.primitive import ambient
from polyax.ir.refs import AbstractRef
from polyax.tree_util import register_dataclass

__all__ = ["StatefulPRNG", "stateful_rng"]

Size = int | Sequence[int] | None


def _shape(size: Size, *params: Any) -> tuple[int, ...]:
    """What is asked for, or what parameters broadcast to."""
    if size is None:
        return np.broadcast_shapes(*map(np.shape, params))
    return tuple(map(operator.index, size)) if isinstance(size, Sequence) else (operator.index(size),)


@register_dataclass
@dataclass(frozen=True, slots=True)
class StatefulPRNG:
    """A key, and a reference to the number of keys that were made of it. ``stateful_rng`` makes one.

    Args:
      _base_key: a typed key; an array of them, if each is for one program under ``vmap``.
      _counter: a reference to an integer for each.

    Raises:
      ValueError: these are something else.
    """

    _base_key: Any
    _counter: Any

    def __post_init__(self) -> None:
        if not is_array_like(self._base_key):
            return  # what stands for leaves while trees are taken apart
        if not dtypes.issubdtype(aval_of(self._base_key).dtype, dtypes.prng_key):
            raise ValueError(f"Expected base_key to be a typed PRNG key; got {self._base_key}")
        if not isinstance(getattr(self._counter, "aval", None), AbstractRef):
            raise ValueError(f"Expected counter to be a scalar integer ref; got {self._counter}")

    def key(self, shape: int | Sequence[int] = ()) -> Any:
        """A new key, or an array of them.

        Raises:
          ValueError: the generator was split, and isn't under ``vmap``.
        """
        if self._base_key.shape:
            raise ValueError("cannot operate on split stateful generator: call it under vmap, or spawn several")
        key = _random.fold_in(self._base_key, self._counter[...])
        _ref.addupdate(self._counter, ..., 1)
        wanted = _shape(shape)
        return _random.split(key, wanted) if wanted else key

    def random(self, size: Size = None, dtype: Any = float) -> Any:
        """Floats in [0, 1)."""
        return _random.uniform(self.key(), _shape(size), dtype)

    def uniform(self, low: Any = 0, high: Any = 1, size: Size = None, *, dtype: Any = float) -> Any:
        """Floats in [low, high)."""
        return _random.uniform(self.key(), _shape(size, low, high), dtype, low, high)

    def normal(self, loc: Any = 0, scale: Any = 1, size: Size = None, *, dtype: Any = float) -> Any:
        """Normally distributed numbers."""
        noise = _random.normal(self.key(), _shape(size, loc, scale), dtype)
        return (jnp.asarray(loc) + jnp.asarray(scale) * noise).astype(dtype)

    def integers(self, low: Any, high: Any = None, size: Size = None, *, dtype: Any = int) -> Any:
        """Integers in [low, high), or in [0, low)."""
        low, high = (0, low) if high is None else (low, high)
        return _random.randint(self.key(), _shape(size, low, high), low, high, dtype)

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Generators that don't depend on each other, as one whose arrays ``vmap`` takes apart."""
        return StatefulPRNG(self.key(num), _ref.new_ref(jnp.zeros(num, int)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Generators that don't depend on each other."""
        return [StatefulPRNG(key, _ref.new_ref(jnp.asarray(0))) for key in self.key(n_children)]


def stateful_rng(seed: Any = None, *, impl: Any = None) -> StatefulPRNG:
    """A generator of random numbers with a state: no key needs to be passed, and each call gives other numbers.

    It can't be returned from functions under ``jit`` and others, nor be carried by loops, as it holds a reference.

    Args:
      seed: an integer; one of the system's randomness, if None.
      impl: the name of the generator of bits, as for ``random.key``.

    Raises:
      TypeError: no seed is given where a function is traced, as it would be the same at each call.

    >>> rng = stateful_rng(42)
    >>> bool(rng.uniform() != rng.uniform())
    True
    """
    if seed is None:
        if ambient.trace is not None:
            raise TypeError(
                "When used within transformed code, jax.experimental.random.stateful_rng() requires an explicit seed "
                "to be set."
            )
        seed = int(np.random.default_rng().integers(2**63))
    return StatefulPRNG(_random.key(seed, impl=impl), _ref.new_ref(jnp.asarray(0)))
