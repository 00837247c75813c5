"""Windows by their names, as numbers that are constants; periodic ones, for spectra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _cosines(*weights: float) -> Callable[[int], np.ndarray]:
    signs = [w * (-1) ** k for k, w in enumerate(weights)]
    return lambda n: sum(w * np.cos(2 * np.pi * k * np.arange(n) / n) for k, w in enumerate(signs)) + np.zeros(n)


WINDOWS: dict[str, Callable[[int], np.ndarray]] = {
    "boxcar": np.ones,
    "hann": _cosines(0.5, 0.5),
    "hamming": _cosines(0.54, 0.46),
    "blackman": _cosines(0.42, 0.5, 0.08),
    "nuttall": _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": _cosines(0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": _cosines(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
    "bartlett": lambda n: 1 - np.abs(2 * np.arange(n) / n - 1),
    "cosine": lambda n: np.sin(np.pi / (n + 1) * (np.arange(n) + 0.5)),
    "parzen": lambda n: _parzen(n + 1)[:-1],
}


def _parzen(n: int) -> np.ndarray:
    place = np.abs(np.arange(n) - (n - 1) / 2) / (n / 2)
    return np.where(place <= 0.5, 1 - 6 * place**2 * (1 - place), 2 * (1 - place) ** 3)


def window_of(window: Any, length: int) -> Any:
    """The numbers of a window: those given, or by its name.

    Raises:
      NotImplementedError: no window of that name is built.
      ValueError: as many numbers aren't given.
    """
    if isinstance(window, (str, tuple)):
        name = window[0] if isinstance(window, tuple) and len(window) == 1 else window
        if name not in WINDOWS:
            known = ", ".join(WINDOWS)
            raise NotImplementedError(f"the window {window!r} is not built; there are {known}, or give its numbers")
        return WINDOWS[name](length) if length > 1 else np.ones(1)
    if np.ndim(window) != 1:
        raise ValueError(f"window must be 1-D, got {np.ndim(window)} dimensions")
    if window.shape[0] != length:
        raise ValueError(f"value specified for nperseg, {length}, is different from length of window")
    return window
