"""Small arrays in float64 that the cases of primitives share."""

from __future__ import annotations

import numpy as np

RNG = np.random.default_rng(0)
X = RNG.uniform(0.3, 0.9, (3, 4))
Y = RNG.uniform(0.3, 0.9, (3, 4))
SIGNED = RNG.uniform(-0.9, 0.9, (3, 4))
ABOVE_ONE = X + 1.0
V = RNG.uniform(0.3, 0.9, 4)
CUBE = RNG.uniform(-1, 1, (2, 3, 4))
Z = SIGNED + 1j * Y
SQUARE = RNG.uniform(-1, 1, (3, 3))
WELL = SQUARE + 3 * np.eye(3)
"""A matrix far from singular."""
N = np.int32(1)
"""An index, or a predicate if compared with zero: mapped, it becomes 1, 0, 1."""
