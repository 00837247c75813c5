"""Windows by their names, as numbers that are constants; periodic ones, for spectra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _cosines(*weights: float) -> Callable[[int], np.ndarray]:
    signs = [w * (-1) ** k for k, w in enumerate(weights)]
    return lambda n: sum(w * np.cos(2 * np.pi * k * np.arange(n) / n) for k, w in enumerate(signs)) + np.zeros(n)


def _cut(symmetric: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The periodic window: the symmetric one of one more number, without the last."""
    return lambda n, *parameters: symmetric(n + 1, *parameters)[:-1]


def _places(n: int) -> np.ndarray:
    """Distances from the middle."""
    return np.arange(n) - (n - 1) / 2


def _parzen(n: int) -> np.ndarray:
    place = np.abs(_places(n)) / (n / 2)
    return np.where(place <= 0.5, 1 - 6 * place**2 * (1 - place), 2 * (1 - place) ** 3)


def _triangle(n: int) -> np.ndarray:
    return 1 - np.abs(_places(n)) / ((n + n % 2) / 2)


def _bohman(n: int) -> np.ndarray:
    place = np.abs(np.linspace(-1, 1, n))
    return (1 - place) * np.cos(np.pi * place) + np.sin(np.pi * place) / np.pi


def _bartlett_hann(n: int) -> np.ndarray:
    place = np.abs(np.arange(n) / (n - 1) - 0.5)
    return 0.62 - 0.48 * place + 0.38 * np.cos(2 * np.pi * place)


def _tukey(n: int, tapered: float = 0.5) -> np.ndarray:
    """Ones, with half a cosine at each end, which take the given part together."""
    if tapered <= 0:
        return np.ones(n)
    inward = (n - 1) / 2 - np.abs(_places(n))  # from the nearer end
    return 0.5 * (1 - np.cos(np.pi * np.minimum(inward / (min(tapered, 1) * (n - 1) / 2), 1)))


def _exponential(n: int, centre: float | None = None, decay: float = 1.0) -> np.ndarray:
    return np.exp(-np.abs(np.arange(n) - ((n - 1) / 2 if centre is None else centre)) / decay)


WINDOWS: dict[str, Callable[..., np.ndarray]] = {
    "boxcar": np.ones,
    "hann": _cosines(0.5, 0.5),
    "hamming": _cosines(0.54, 0.46),
    "blackman": _cosines(0.42, 0.5, 0.08),
    "nuttall": _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": _cosines(0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": _cosines(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
    "general_hamming": lambda n, weight: _cosines(weight, 1 - weight)(n),
    "general_cosine": lambda n, weights: _cosines(*weights)(n),
    "bartlett": _cut(np.bartlett),
    "kaiser": _cut(np.kaiser),
    "cosine": _cut(lambda n: np.sin(np.pi / n * (np.arange(n) + 0.5))),
    "gaussian": _cut(lambda n, deviation: np.exp(-0.5 * (_places(n) / deviation) ** 2)),
    "general_gaussian": _cut(lambda n, power, scale: np.exp(-0.5 * np.abs(_places(n) / scale) ** (2 * power))),
    "lanczos": _cut(lambda n: np.sinc(2 * np.arange(n) / (n - 1) - 1)),
    "triang": _cut(_triangle),
    "parzen": _cut(_parzen),
    "bohman": _cut(_bohman),
    "barthann": _cut(_bartlett_hann),
    "tukey": _cut(_tukey),
    "exponential": _cut(_exponential),
}


def window_of(window: Any, length: int) -> Any:
    """The numbers of a window: those given, or by its name, which parameters may follow in a tuple.

    Raises:
      ValueError: no window of that name is built, or as many numbers aren't given.
      TypeError: its parameters aren't those given.
    """
    if isinstance(window, (str, tuple)):
        name, *parameters = (window,) if isinstance(window, str) else window
        if name not in WINDOWS:
            known = ", ".join(WINDOWS)
            raise ValueError(f"Invalid window name {name!r}: there are {known}; or give its numbers")
        return WINDOWS[name](length, *parameters) if length > 1 else np.ones(1)
    if np.ndim(window) != 1:
        raise ValueError(f"window must be 1-D, got {np.ndim(window)} dimensions")
    if window.shape[0] != length:
        raise ValueError(f"value specified for nperseg, {length}, is different from length of window")
    return window
