"""Fourier transforms on the cpu, by each library that there may be."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import config
from polyax_cpu.libraries import fourier

RNG = np.random.default_rng(0)
LIBRARIES = {"ducc0": [], "scipy": ["ducc0"], "numpy": ["ducc0", "scipy.fft"]}
"""Which others are missing."""
CASES = {
    "one": (jnp.fft.fft, np.fft.fft, (64,)),
    "many": (jnp.fft.ifft, np.fft.ifft, (40, 1, 512)),
    "real": (jnp.fft.rfft, lambda x: np.fft.rfft(x.real), (300, 60)),
    "back": (jnp.fft.irfft, np.fft.irfft, (300, 61)),
    "columns": (lambda x: jnp.fft.fft(x, axis=0), lambda x: np.fft.fft(x, axis=0), (60, 317)),
    "two dimensions": (jnp.fft.fft2, np.fft.fft2, (5, 128, 64)),
    "two dimensions, inverse": (jnp.fft.ifft2, np.fft.ifft2, (150, 130)),
    "three dimensions, real": (jnp.fft.rfftn, lambda x: np.fft.rfftn(x.real), (6, 20, 300)),
    "three dimensions, back": (jnp.fft.irfftn, np.fft.irfftn, (40, 1, 500)),
    "rows a page apart": (jnp.fft.fft, np.fft.fft, (2, 37, 512)),
    "ends of several planes": (lambda x: jnp.fft.fft(x, axis=1), lambda x: np.fft.fft(x, axis=1), (2, 300, 37)),
    "ends of several rows": (jnp.fft.fft2, np.fft.fft2, (3, 40, 205)),
    "back, of two elements": (jnp.fft.irfft2, np.fft.irfft2, (3, 2)),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_numpy_in_double_precision(name: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fun, oracle, shape = CASES[name]
    x = _without(library, shape, monkeypatch)
    with polyax.default_device("cpu"):
        got = polyax.jit(lambda x: fun(x.real if "real" in name else x))(x)
    want = oracle(x.astype(complex))
    np.testing.assert_allclose(got, want, 1e-4, 1e-4 * np.abs(want).max())


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", CASES)
def test_has_the_same_bits_with_any_number_of_threads(name: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fun, _, shape = CASES[name]
    x = _without(library, shape, monkeypatch)
    found = []
    for threads in (1, 2, 3):
        with config.override(num_threads=threads), polyax.default_device("cpu"):
            found.append(np.asarray(polyax.jit(lambda x: fun(x.real if "real" in name else x))(x)).tobytes())
    assert found[0] == found[1] == found[2]


def _without(library: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """A random array; other libraries can't be imported."""
    for missing in LIBRARIES[library]:
        monkeypatch.setitem(sys.modules, missing, None)
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(np.complex64)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("size", [64, fourier.PARALLEL_SIZE])
def test_takes_the_fastest_library(library: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """SciPy isn't loaded for a few elements."""
    x, used = _without(library, (size,), monkeypatch), []
    before = fourier._numpy
    monkeypatch.setattr(fourier, "_numpy", lambda module, kind: used.append(module.__name__) or before(module, kind))
    with polyax.default_device("cpu"):
        polyax.jit(lambda x: jnp.fft.fft(x))(x)
    wanted = {"ducc0": set(), "scipy": {"scipy.fft" if size == fourier.PARALLEL_SIZE else "numpy.fft"}}
    assert set(used) == wanted.get(library, {"numpy.fft"})


def test_rows_that_are_pages_apart_are_moved_further_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """DUCC takes sixteen at a time, each of which would drive another from the nearest cache, which has eight ways."""
    seen: list[tuple[int, int]] = []
    ducc = pytest.importorskip("ducc0").fft
    c2c = ducc.c2c
    monkeypatch.setattr(ducc, "c2c", lambda x, *a, **kw: seen.append((len(x), x.strides[0])) or c2c(x, *a, **kw))
    with config.override(num_threads=1), polyax.default_device("cpu"):
        for rows, width in ((96, 512), (32, 500), (1, 512)):
            polyax.jit(lambda x: jnp.fft.fft(x))(np.ones((rows, width), np.complex64))
    assert seen == [(64, 4224), (32, 4224), (32, 4000), (1, 4096)]
