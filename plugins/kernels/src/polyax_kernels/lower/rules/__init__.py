"""The kernel rules that all kernel backends share, one file per family of primitives."""

from polyax_kernels.lower.rules import bits, compare, convolve, elementwise, indexing, reduce, shape, windows
from polyax_kernels.lower.rules.table import RULES as SHARED

__all__ = ["SHARED", "bits", "compare", "convolve", "elementwise", "indexing", "reduce", "shape", "windows"]
