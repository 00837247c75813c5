"""Signals, as ``jax.scipy.signal`` has them. Re-exports only."""

from polyax.scipy.signal.convolutions import *
from polyax.scipy.signal.spectra import *
