"""Fourier transforms on the cpu: by native code, and by each library that there may be for others."""

from __future__ import annotations

import sys
from itertools import product
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import config, lax
from polyax.ir.aval import ShapedArray
from polyax.ops.fft import FftType
from polyax_cpu.fourier import factors, library, lowerings

RNG = np.random.default_rng(0)
LIBRARIES = {"ducc0": [], "scipy": ["ducc0"], "numpy": ["ducc0", "scipy.fft"]}
"""Which others are missing."""
CASES = {
    "one": (jnp.fft.fft, np.fft.fft, (64,)),
    "many": (jnp.fft.ifft, np.fft.ifft, (40, 1, 512)),
    "real": (jnp.fft.rfft, lambda x: np.fft.rfft(x.real), (300, 60)),
    "real, of odd length": (jnp.fft.rfft, lambda x: np.fft.rfft(x.real), (30, 61)),
    "back": (jnp.fft.irfft, np.fft.irfft, (300, 61)),
    "back to an odd length": (lambda x: jnp.fft.irfft(x, 121), lambda x: np.fft.irfft(x, 121), (30, 61)),
    "columns": (lambda x: jnp.fft.fft(x, axis=0), lambda x: np.fft.fft(x, axis=0), (60, 317)),
    "two dimensions": (jnp.fft.fft2, np.fft.fft2, (5, 128, 64)),
    "two dimensions, inverse": (jnp.fft.ifft2, np.fft.ifft2, (150, 130)),
    "three dimensions, real": (jnp.fft.rfftn, lambda x: np.fft.rfftn(x.real), (6, 20, 300)),
    "three dimensions, back": (jnp.fft.irfftn, np.fft.irfftn, (40, 1, 401)),
    "four dimensions": (jnp.fft.fftn, np.fft.fftn, (2, 3, 4, 5)),
    "rows a page apart": (jnp.fft.fft, np.fft.fft, (2, 37, 512)),
    "ends of several planes": (lambda x: jnp.fft.fft(x, axis=1), lambda x: np.fft.fft(x, axis=1), (2, 300, 37)),
    "ends of several rows": (jnp.fft.fft2, np.fft.fft2, (3, 40, 205)),
    "few columns": (jnp.fft.fft2, np.fft.fft2, (33, 20, 3)),
    "back, of two elements": (jnp.fft.irfft2, np.fft.irfft2, (3, 2)),
    "a long one": (jnp.fft.ifft, np.fft.ifft, (6000,)),
    "some long ones": (jnp.fft.fft, np.fft.fft, (3, 2100)),
}
LENGTHS = [*range(1, 33), 49, 79, 11 * 13, 16 * 8, 8 * 7 * 5, 3 * 127, 293]
KINDS = {
    "fft": (lambda x, n: jnp.fft.fft(x), lambda x, n: np.fft.fft(x)),
    "ifft": (lambda x, n: jnp.fft.ifft(x), lambda x, n: np.fft.ifft(x)),
    "rfft": (lambda x, n: jnp.fft.rfft(x.real), lambda x, n: np.fft.rfft(x.real)),
    "irfft": (lambda x, n: jnp.fft.irfft(x, n), lambda x, n: np.fft.irfft(x, n)),
}


def _numbers(shape: tuple[int, ...], dtype: str = "complex64") -> np.ndarray:
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)


def _on_cpu(name: str, x: np.ndarray) -> np.ndarray:
    with polyax.default_device("cpu"):
        return np.asarray(polyax.jit(lambda x: CASES[name][0](x.real if "real" in name else x))(x))


def _agrees(name: str, x: np.ndarray) -> None:
    want = CASES[name][1](x.astype(complex))
    np.testing.assert_allclose(_on_cpu(name, x), want, 1e-4, 1e-4 * np.abs(want).max())


def _same_bits(name: str, x: np.ndarray) -> None:
    found = []
    for threads in (1, 2, 3):
        with config.override(num_threads=threads):
            found.append(_on_cpu(name, x).tobytes())
    assert found[0] == found[1] == found[2]


# --- native code -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("name", CASES)
def test_no_python_runs(name: str) -> None:
    _agrees(name, _numbers(CASES[name][2]))


@pytest.mark.parametrize("name", CASES)
def test_threads_leave_the_bits(name: str) -> None:
    _same_bits(name, _numbers(CASES[name][2]))


@pytest.mark.usefixtures("native", "in_64_bits")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_length_is_as_exact_as_its_type(kind: str, dtype: str) -> None:
    """As few lines as one, and as many as are no multiple of the lanes."""
    ours, theirs = KINDS[kind]
    for n, count in product(LENGTHS, (1, 19)):
        x = _numbers((count, n // 2 + 1 if kind == "irfft" else n), dtype)
        want = theirs(x.astype(complex), n)
        got = np.asarray(polyax.jit(lambda x, n=n: ours(x, n))(x))
        assert got.dtype.itemsize * 2 == (1 + (kind != "irfft")) * np.dtype(dtype).itemsize
        np.testing.assert_allclose(got, want, 0, 20 * np.finfo(dtype).eps * np.abs(want).max(), err_msg=str(n))


@pytest.mark.usefixtures("native")
def test_lines_know_nothing_of_each_other() -> None:
    """Infinities, and what is small beside others, stay in their lines, which have the same bits wherever they are."""
    x = _numbers((21, 60)).real * np.logspace(-18, 18, 21, dtype=np.float32)[:, None]
    x[7, 5] = np.inf
    with polyax.default_device("cpu"):
        transform = polyax.jit(jnp.fft.rfft)
        whole, turned = np.asarray(transform(x)), np.asarray(transform(np.roll(x, 4, 0)))
    assert not np.isfinite(whole[7]).any() and np.isfinite(np.delete(whole, 7, 0)).all()
    assert np.roll(whole, 4, 0).tobytes() == turned.tobytes()


def test_what_can_only_be_real_is_not_asked_for_its_imaginary_part() -> None:
    for n in (8, 9):
        x = _numbers((9, n // 2 + 1))
        with polyax.default_device("cpu"):
            got = np.asarray(polyax.jit(lambda x, n=n: jnp.fft.irfft(x, n))(x))
        np.testing.assert_allclose(got, np.fft.irfft(x, n), 1e-5, 1e-6)


@pytest.mark.usefixtures("native")
def test_loops_and_maps_have_the_bits_of_plain_calls() -> None:
    x = _numbers((5, 17, 48))

    def turn(carry: Any, plane: Any) -> tuple[Any, Any]:
        return carry, jnp.fft.ifft2(jnp.fft.fft(plane))

    with polyax.default_device("cpu"):
        looped = polyax.jit(lambda x: lax.scan(turn, 0, x)[1])(x)
        plain = [np.asarray(polyax.jit(lambda x: turn(0, x)[1])(plane)) for plane in x]
        eager = [np.asarray(turn(0, jnp.asarray(plane))[1]) for plane in x]
    assert np.asarray(looped).tobytes() == np.stack(plain).tobytes() == np.stack(eager).tobytes()


@pytest.mark.parametrize(
    ("kind", "shape", "axes", "count"),
    [("FFT", (40, 512), 1, 1), ("IFFT", (5, 128, 64), 2, 2), ("RFFT", (6, 20, 300), 3, 3), ("FFT", (6000,), 1, 2)],
)
def test_axes_are_a_step_each_and_long_lines_two(kind: str, shape: tuple[int, ...], axes: int, count: int) -> None:
    x = ShapedArray(shape, np.dtype("float32" if kind == "RFFT" else "complex64"))
    program = lowerings.program([x], fft_type=FftType[kind], fft_lengths=shape[-axes:])
    assert [eqn.primitive for eqn in program.jaxpr.eqns] == [lowerings.lines_p] * count


def test_factors_are_those_that_have_code_and_then_odd_ones() -> None:
    assert [factors.factors(n) for n in (1, 16, 128, 256, 300)] == [(), (4, 4), (8, 4, 4), (8, 8, 4), (4, 3, 5, 5)]
    assert factors.factors(2 * 11 * 11 * 79) == (2, 11, 11, 79)
    for n in range(1, 500):
        assert np.prod(factors.factors(n), initial=1) == n


# --- libraries -------------------------------------------------------------------------------------------------------


@pytest.fixture(params=LIBRARIES)
def by_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Transforms are those of one library; others can't be imported."""
    monkeypatch.setattr(lowerings, "why_not", lambda *_: "libraries are tested")
    for missing in LIBRARIES[request.param]:
        monkeypatch.setitem(sys.modules, missing, None)
    return request.param


@pytest.mark.parametrize("name", CASES)
def test_libraries_agree_with_numpy_in_double_precision(name: str, by_library: str) -> None:
    _agrees(name, _numbers(CASES[name][2]))


@pytest.mark.parametrize("name", CASES)
def test_libraries_have_the_same_bits_with_any_number_of_threads(name: str, by_library: str) -> None:
    _same_bits(name, _numbers(CASES[name][2]))


@pytest.mark.parametrize("shape", [(331,), (20011,), (4, 9, 2 * 331), (2, 8200)])
def test_large_factors_and_long_lines_are_left_to_a_library(shape: tuple[int, ...]) -> None:
    x = _numbers(shape)
    with polyax.default_device("cpu"):
        for ours, theirs in ((jnp.fft.fft, np.fft.fft), (jnp.fft.irfft, np.fft.irfft)):
            want = theirs(x.astype(complex))
            np.testing.assert_allclose(polyax.jit(ours)(x), want, 1e-4, 1e-4 * np.abs(want).max())


@pytest.mark.parametrize("size", [64, library.PARALLEL_SIZE])
def test_takes_the_fastest_library(by_library: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """SciPy isn't loaded for a few elements."""
    x, used = _numbers((size,)), []
    before = library._numpy
    monkeypatch.setattr(library, "_numpy", lambda module, kind: used.append(module.__name__) or before(module, kind))
    with polyax.default_device("cpu"):
        polyax.jit(lambda x: jnp.fft.fft(x))(x)
    wanted = {"ducc0": set(), "scipy": {"scipy.fft" if size == library.PARALLEL_SIZE else "numpy.fft"}}
    assert set(used) == wanted.get(by_library, {"numpy.fft"})


def test_rows_that_are_pages_apart_are_moved_further_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """DUCC takes sixteen at a time, each of which would drive another from the nearest cache, which has eight ways."""
    seen: list[tuple[int, int]] = []
    ducc = pytest.importorskip("ducc0").fft
    c2c = ducc.c2c
    monkeypatch.setattr(lowerings, "why_not", lambda *_: "a library is tested")
    monkeypatch.setattr(ducc, "c2c", lambda x, *a, **kw: seen.append((len(x), x.strides[0])) or c2c(x, *a, **kw))
    with config.override(num_threads=1), polyax.default_device("cpu"):
        for rows, width in ((96, 512), (32, 500), (1, 512)):
            polyax.jit(lambda x: jnp.fft.fft(x))(np.ones((rows, width), np.complex64))
    assert seen == [(64, 4224), (32, 4224), (32, 4000), (1, 4096)]
