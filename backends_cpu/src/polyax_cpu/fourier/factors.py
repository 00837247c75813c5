"""The factors of a transform's length, and the roots of unity that its passes multiply by. Knows no code."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

OWN = 8, 4, 2, 3, 5, 7
"""Factors that have code of their own; others are odd."""
DTYPES = {"float": np.float32, "double": np.float64}
LARGEST = 300
"""Larger factors take longer than a library, which makes a product of two transforms of them."""


@functools.cache
def factors(n: int) -> tuple[int, ...]:
    """In the order of their passes: what has no code of its own comes last, where nothing is multiplied by roots."""
    found = list[int]()
    for p in OWN:
        while n % p == 0 and (p != 8 or n % 32 != 16):  # 16 is 4 x 4, not 8 x 2
            found.append(p)
            n //= p
    p = OWN[-1] + 4
    while n > 1:
        p = p if n % p == 0 else p + 2 if p * p < n else n
        if n % p == 0:
            found.append(p)
            n //= p
    return tuple(found)


def roots(n: int, numbers: np.ndarray) -> np.ndarray:
    """``exp(-2 pi i k / n)``, by angles of up to an eighth of a turn: those of others are rounded more."""
    numbers = 4 * (numbers % n)
    quarters = (numbers + n // 2) // n
    near = np.exp(-0.5j * np.pi * (numbers - quarters * n) / n)
    return near * np.array([1, -1j, -1, 1j])[quarters % 4]


@functools.cache
def table(n: int, type: str) -> np.ndarray:
    """What the passes of a transform of so many elements multiply by, one pass after the other: by element, real and
    imaginary parts of the roots of each place but the first; then cosines and sines of each pair of places in one half
    of the circle, for factors without code of their own."""
    return np.concatenate([np.zeros(0), *_parts(n)]).astype(DTYPES[type])


def _parts(n: int) -> Iterator[np.ndarray]:
    done = 1
    for p in factors(n):
        rest, half = n // (done * p), np.arange(1, (p - 1) // 2 + 1)
        yield _flat(roots(n, done * np.arange(rest)[:, None] * np.arange(1, p)))
        yield _flat(np.conj(roots(p, np.outer(half, half))))
        done *= p


@functools.cache
def halves(n: int, type: str) -> np.ndarray:
    """The roots that the halves of a real transform of so many elements are put together by."""
    return _flat(roots(n, np.arange(n // 2 + 1))).astype(DTYPES[type])


@functools.cache
def between(rows: int, columns: int, multiple: int, type: str) -> np.ndarray:
    """The roots between the columns and the rows of a line: of each row real parts, then imaginary ones. The last
    column is repeated up to a ``multiple``, as lanes repeat it."""
    places = np.minimum(np.arange(-(-columns // multiple) * multiple), columns - 1)
    found = roots(rows * columns, np.outer(np.arange(rows), places))
    return np.stack([np.real(found), np.imag(found)], 1).astype(DTYPES[type])


def _flat(numbers: np.ndarray) -> np.ndarray:
    return np.stack([np.real(numbers), np.imag(numbers)], -1).ravel()
