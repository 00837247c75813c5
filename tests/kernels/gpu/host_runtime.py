"""A runtime of the GPU path whose memory is NumPy's, and for which everything is done at once."""

from __future__ import annotations

from abc import ABC
from typing import Any

import numpy as np

from polyax_kernels.gpu.runtime import Mark, Runtime
from support.emulator import Now


class HostRuntime(Runtime, ABC):
    """Subclasses say what a program is, and how it is launched."""

    def allocate(self, nbytes: int) -> np.ndarray:
        return np.zeros(nbytes, np.uint8)

    def write(self, target: Any, offset: int, host: np.ndarray) -> None:
        target[offset : offset + host.nbytes] = host.reshape(-1).view(np.uint8)

    def read(self, source: Any, offset: int, host: np.ndarray) -> None:
        host.reshape(-1).view(np.uint8)[...] = source[offset : offset + host.nbytes]

    def copy(self, source: Any, source_offset: int, target: Any, target_offset: int, nbytes: int) -> None:
        target[target_offset : target_offset + nbytes] = source[source_offset : source_offset + nbytes]

    def mark(self) -> Mark:
        return Now()

    def synchronize(self) -> None:
        """Nothing is put off."""
