"""What keys and counters are hashed by: Philox of two and of four words, and Threefry of four.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). Words have one shape. Must not know keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.lax import lenient as lax

_WEYL = 0x9E3779B9, 0xBB67AE85
_FACTOR = 0xD256D193
_FACTORS = 0xD2511F53, 0xCD9E8D57
_PARITY = 0x1BD11BDA
_TURNS = (10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20)


def philox2x32(key: Sequence[Any], counts: Sequence[Any]) -> list[Any]:
    """Ten rounds, with a key of one word."""
    left, right = counts
    for n in range(10):
        low, high = _product(left, _FACTOR)
        left, right = _xor(high, right, _bumped(key[0], n, 0)), low
    return [left, right]


def philox4x32(key: Sequence[Any], counts: Sequence[Any]) -> list[Any]:
    """Ten rounds, with a key of two words."""
    a, b, c, d = counts
    for n in range(10):
        (low_a, high_a), (low_c, high_c) = _product(a, _FACTORS[0]), _product(c, _FACTORS[1])
        a, b, c, d = _xor(high_c, b, _bumped(key[0], n, 0)), low_c, _xor(high_a, d, _bumped(key[1], n, 1)), low_a
    return [a, b, c, d]


def _product(x: Any, factor: int) -> tuple[Any, Any]:
    """The lower and the upper half."""
    word = np.uint32(factor)
    return lax.mul(x, word), lax.mulhi(x, word)


def _bumped(word: Any, times: int, n: int) -> Any:
    return lax.add(word, np.uint32(times * _WEYL[n] & 0xFFFFFFFF))


def _xor(first: Any, *others: Any) -> Any:
    for other in others:
        first = lax.bitwise_xor(first, other)
    return first


def threefry4x32(key: Sequence[Any], counts: Sequence[Any]) -> list[Any]:
    """Twenty rounds, with a key of four words."""
    schedule = [*key, _xor(*key, np.uint32(_PARITY))]
    words = [lax.add(x, k) for x, k in zip(counts, key, strict=True)]
    for n in range(20):
        first, second = _TURNS[n % 8]
        _mix(words, 0, 1 if n % 2 == 0 else 3, first)
        _mix(words, 2, 3 if n % 2 == 0 else 1, second)
        if n % 4 == 3:
            _inject(words, schedule, n // 4 + 1)
    return words


def _mix(words: list[Any], one: int, other: int, turn: int) -> None:
    words[one] = lax.add(words[one], words[other])
    up, down = (lax.shift_left, np.uint32(turn)), (lax.shift_right_logical, np.uint32(32 - turn))
    turned = lax.bitwise_or(*(shift(words[other], by) for shift, by in (up, down)))
    words[other] = lax.bitwise_xor(words[one], turned)


def _inject(words: list[Any], schedule: Sequence[Any], n: int) -> None:
    words[:] = [lax.add(x, schedule[(n + i) % 5]) for i, x in enumerate(words)]
    words[3] = lax.add(words[3], np.uint32(n))
