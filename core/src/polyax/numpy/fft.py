"""Fourier transforms, as ``jax.numpy.fft`` has them. Re-exports only."""

# ruff: noqa: F403

from polyax.numpy.fourier import *
