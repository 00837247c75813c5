"""The pivots and permutations that LAPACK's exchanges of rows make: a kernel in CUDA C and HIP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax_kernels.gpu.runtime import Runtime

PERMUTE = """
extern "C" __global__ void permute(int *exchanges, int *pivots, int *permutation, size_t count, size_t k, size_t m) {
  size_t n = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (n >= count) return;
  exchanges += n * k, pivots += n * k, permutation += n * m;
  for (size_t i = 0; i < m; i++) permutation[i] = (int)i;
  for (size_t i = 0; i < k; i++) {
    int other = pivots[i] = exchanges[i] - 1, row = permutation[i];
    permutation[i] = permutation[other], permutation[other] = row;
  }
}
"""
"""Exchanges of rows, counted from 1, as ``pivots`` counted from 0, and the permutation that they make."""


def permute(runtime: Runtime, exchanges: Any, outs: Sequence[Any], sizes: tuple[int, int, int]) -> None:
    """``outs``: views of the pivots and the permutations. ``sizes``: how many matrices, exchanges of each, its rows."""
    places = [(exchanges, 0), *((v.memory, v.offset) for v in outs)]
    runtime.launch(runtime.load(PERMUTE, "permute"), (-(-sizes[0] // 128),), (128,), places, sizes)
