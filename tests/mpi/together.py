"""What the cases share that several processes run: which process this is, and data that all have alike."""

from __future__ import annotations

import os

import numpy as np

import polyax
import polyax.numpy as jnp
from support.parts import close_everywhere

if "PMI_RANK" in os.environ:
    polyax.distributed.initialize()
RANK, PROCESSES = polyax.process_index(), polyax.process_count()
OWN, N = polyax.local_device_count(), polyax.device_count()
HERE = slice(RANK * OWN, (RANK + 1) * OWN)


def same(got, expected, tolerance=1e-5):
    close_everywhere(got, expected, tolerance, 1e-6)


def data(*shape, dtype="float32", seed=0):
    """The same in all processes."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 9, shape) + (1j * rng.integers(0, 9, shape) if dtype == "complex64" else 0)
    return np.asarray(x).astype(jnp.dtype(dtype))
