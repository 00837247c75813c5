"""What the programs share: how they are listed, and small data sets that need no file.

A program is a function without arguments that returns a dictionary of numbers. Programs are written for JAX, and
import it by its name; what that means is decided by who runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Program(NamedTuple):
    """A program, and how far its numbers may be from JAX's: relative to theirs, and absolute."""

    run: Callable[[], dict[str, Any]]
    rtol: float
    atol: float


PROGRAMS: dict[str, Program] = {}


def program(rtol: float = 1e-4, atol: float = 1e-5) -> Callable[[Callable[[], dict[str, Any]]], Any]:
    """Decorator: lists a program under its name."""

    def listed(run: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
        PROGRAMS[run.__name__] = Program(run, rtol, atol)
        return run

    return listed


def numbers(x: Any) -> Any:
    """Arrays as lists, for JSON."""
    if isinstance(x, dict):
        return {k: numbers(v) for k, v in x.items()}
    return np.asarray(x).astype(np.float64).tolist()


def blobs(n: int = 64, classes: int = 4, features: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Points around centres: inputs and classes."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, classes, n)
    centres = rng.normal(size=(classes, features))
    return (centres[labels] + 0.3 * rng.normal(size=(n, features))).astype(np.float32), labels.astype(np.int32)


def images(n: int = 16, size: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Images of stripes, across or down: of one channel, and which."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, n)
    stripes = np.sin(np.arange(size) * 1.5)
    pictures = np.where(labels[:, None, None] == 1, stripes[None, :, None], stripes[None, None, :])
    noisy = pictures + 0.1 * rng.normal(size=(n, size, size))
    return noisy[..., None].astype(np.float32), labels.astype(np.int32)


def tokens(n: int = 8, length: int = 12, vocabulary: int = 16) -> np.ndarray:
    """Sequences that count upward from a random beginning."""
    start = np.random.default_rng(2).integers(0, vocabulary, n)
    return ((start[:, None] + np.arange(length)) % vocabulary).astype(np.int32)
