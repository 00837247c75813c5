"""Dense arrays, and the ways to store them."""

from __future__ import annotations

import numpy as np

SHAPE = (2, 3, 4)
LAYOUTS = [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (0, 3)]
"""Numbers of batch and dense dimensions of an array of that shape."""


def some(*shape: int, seed: int = 0, share: float = 0.4) -> np.ndarray:
    """An array of which about that share isn't 0."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * (rng.random(shape) < share)).astype(np.float32)


def full(*shape: int, seed: int = 1) -> np.ndarray:
    return some(*shape, seed=seed, share=2.0)


def close(found: object, wanted: object, atol: float = 1e-5) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), atol=atol, rtol=1e-5)
