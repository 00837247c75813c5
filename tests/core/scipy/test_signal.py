"""Signals, transforms, interpolation and integrals against SciPy."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.ndimage
import scipy.signal

import polyax
from polyax.scipy import cluster, fft, integrate, interpolate, ndimage, signal
from polyax.scipy.spatial.transform import Rotation
from support.rows import Row, check_derivatives, check_jit, check_values, check_vmap

RNG = np.random.default_rng(11)
X, Y = RNG.normal(size=9), RNG.normal(size=4)
IMAGE, KERNEL = RNG.normal(size=(5, 6)), RNG.normal(size=(3, 2))
SIGNAL, OTHER = RNG.normal(size=(2, 60)), RNG.normal(size=(2, 60))
HOUSES = {"signal": scipy.signal, "fft": scipy.fft, "integrate": scipy.integrate, "ndimage": scipy.ndimage}


def row(module, name, *args, wrt=(), coarse=2e-4, **params):
    mine = partial(getattr(module, name), **params)
    theirs = partial(getattr(HOUSES[module.__name__.rpartition(".")[2]], name), **params)
    return Row(mine, theirs, args, wrt, rtol=1e-10, coarse=coarse, slope=1e-5)


def grid(method, fill_value):
    lines = [np.array([0.0, 1.0, 3.0]), np.array([-1.0, 0.5, 1.0, 2.0])]

    def of(house):
        return lambda values, at: house.RegularGridInterpolator(
            lines, values, method=method, bounds_error=False, fill_value=fill_value
        )(at)

    at = np.array([[0.5, 0.25], [2.5, 1.75], [1.0, -0.9], [4.0, 0.0]])
    return Row(
        of(interpolate), of(scipy.interpolate), (RNG.normal(size=(3, 4)), at), (0,) if fill_value is None else ()
    )


MODES = ("full", "same", "valid")
EDGES = {
    "constant": "grid-constant",
    "nearest": "nearest",
    "wrap": "grid-wrap",
    "mirror": "mirror",
    "reflect": "reflect",
}
PLACES = np.array([[-1.4, 0.3, 1.7, 4.2, 6.1], [0.2, 2.6, 5.4, -0.7, 3.3]])

ROWS = {
    **{
        f"{name} {mode} {method}": row(signal, name, X, Y, wrt=(0, 1), mode=mode, method=method)
        for name in ("convolve", "correlate")
        for mode in ("full", "same", "valid")
        for method in ("direct", "fft")
    },
    **{f"convolve shorter first, {mode}": row(signal, "convolve", Y, X, mode=mode) for mode in MODES},
    "convolve of images": row(signal, "convolve", IMAGE, KERNEL, wrt=(0, 1), mode="same"),
    **{
        f"{name} {mode}": row(signal, name, IMAGE, KERNEL, mode=mode)
        for name in ("convolve2d", "correlate2d")
        for mode in ("full", "same", "valid")
    },
    **{
        f"fftconvolve {mode} {axes}": row(signal, "fftconvolve", IMAGE, IMAGE[:, 1:4], wrt=(0, 1), mode=mode, axes=axes)
        for mode in ("full", "same", "valid")
        for axes in (1, [1])
    },
    "correlate2d, complex, the smaller first": row(signal, "correlate2d", KERNEL * 1j, IMAGE * (2 + 1j), mode="valid"),
    "fftconvolve, complex": row(signal, "fftconvolve", X + 1j * X[::-1], Y * 1j),
    "detrend": row(signal, "detrend", SIGNAL, wrt=(0,)),
    "detrend, constant": row(signal, "detrend", SIGNAL, type="constant", axis=0),
    "detrend, pieces": row(signal, "detrend", SIGNAL, bp=[20, 35]),
    "stft": row(signal, "stft", SIGNAL, nperseg=16),
    "stft, plain": row(signal, "stft", SIGNAL, nperseg=16, noverlap=12, boundary=None, padded=False, window="hamming"),
    "stft, all": row(
        signal, "stft", SIGNAL.T, nperseg=15, nfft=20, boundary="odd", return_onesided=False, axis=0, fs=10.0
    ),
    "stft, even": row(signal, "stft", SIGNAL, nperseg=16, boundary="even", detrend="linear", window=np.ones(16)),
    "csd": row(signal, "csd", SIGNAL, OTHER, nperseg=16, wrt=()),
    "csd, spectrum": row(signal, "csd", SIGNAL, OTHER, nperseg=16, scaling="spectrum", average="median", fs=4.0),
    "csd, both sides": row(signal, "csd", SIGNAL, OTHER, nperseg=15, return_onesided=False, detrend=False),
    "welch": row(signal, "welch", SIGNAL, wrt=(0,), nperseg=16, fs=2.0),
    **{
        f"welch {window}": row(signal, "welch", SIGNAL, nperseg=17, window=window)
        for window in (
            "boxcar", "blackman", "bartlett", "cosine", "nuttall", "blackmanharris", "flattop", "parzen", "triang",
            "bohman", "barthann", "lanczos", "tukey", ("tukey", 0.3), ("tukey", 0), "exponential", ("kaiser", 5.0),
            ("exponential", None, 3.0), ("gaussian", 3.0), ("general_gaussian", 1.5, 3.0), ("general_hamming", 0.6),
            ("general_cosine", (0.5, 0.3, 0.2)),
        )
    },
    **{
        f"istft {boundary}": Row(
            lambda x, boundary=boundary: signal.istft(signal.stft(x, nperseg=16)[2], nperseg=16, boundary=boundary),
            lambda x, boundary=boundary: scipy.signal.istft(
                scipy.signal.stft(x, nperseg=16)[2], nperseg=16, boundary=boundary
            ),
            (SIGNAL[0],),
            (),
            rtol=1e-9,
            coarse=1e-3,
        )
        for boundary in (True, False)
    },
    **{
        f"{name} norm={norm} n={n}": row(fft, name, IMAGE, wrt=(0,), norm=norm, n=n, axis=0)
        for name in ("dct", "idct")
        for norm in (None, "ortho")
        for n in (None, 4, 7)
    },
    **{
        f"{name} {params}": row(fft, name, IMAGE, **params)
        for name in ("dctn", "idctn")
        for params in ({}, {"norm": "ortho", "s": (4, 8)}, {"axes": (1,)})
    },
    "trapezoid": row(integrate, "trapezoid", IMAGE, wrt=(0,), dx=0.5, axis=0),
    "trapezoid, places": Row(integrate.trapezoid, scipy.integrate.trapezoid, (X, np.cumsum(X**2)), (0, 1)),
    **{
        f"map_coordinates {mode} {order}": row(
            ndimage, "map_coordinates", IMAGE, PLACES, wrt=(0, 1)[: 1 + order], order=order, mode=theirs
        )
        for order in (0, 1)
        for mode, theirs in EDGES.items()
    },
    "RegularGridInterpolator": grid("linear", np.nan),
    "RegularGridInterpolator, beyond": grid("linear", None),
    "RegularGridInterpolator, nearest": grid("nearest", 7.0),
    "vq": Row(cluster.vq.vq, scipy.cluster.vq.vq, (IMAGE, KERNEL[:, :1] * IMAGE[:3]), ()),
}  # fmt: skip
for _name in [n for n in ROWS if n.startswith("map_coordinates")]:  # SciPy has other names for what JAX does
    _r = ROWS[_name]
    ROWS[_name] = Row(
        partial(ndimage.map_coordinates, order=int(_name[-1]), mode=_name.split()[1]), _r.oracle, _r.args, _r.wrt, 1e-10
    )


def test_one_point_of_a_grid_is_a_row_of_points():
    axes = (np.arange(3.0), np.arange(4.0))
    values = np.arange(12.0).reshape(3, 4)
    got = interpolate.RegularGridInterpolator(axes, values)(np.array([0.5, 1.5]))
    assert (
        got.tolist() == scipy.interpolate.RegularGridInterpolator(axes, values)(np.array([0.5, 1.5])).tolist() == [3.5]
    )


def test_coordinates_that_are_numbers_give_a_number():
    axes = (np.arange(3.0), np.arange(4.0))
    got = interpolate.RegularGridInterpolator(axes, np.arange(12.0).reshape(3, 4), bounds_error=False)((0.5, 1.5))
    assert got.shape == () and got == 3.5


@pytest.mark.parametrize("name", ROWS)
def test_agrees_with_scipy(name):
    check_values(ROWS[name])


@pytest.mark.parametrize("name", [n for n, r in ROWS.items() if r.wrt])
def test_derivatives_agree_with_finite_differences(name):
    check_derivatives(ROWS[name])


@pytest.mark.parametrize("name", ROWS)
def test_compiled_and_mapped(name):
    check_jit(ROWS[name])
    check_vmap(ROWS[name])


BAD = {
    "mode": (lambda: signal.convolve(X, Y, mode="x"), ValueError, "mode must be one of"),
    "method": (lambda: signal.convolve(X, Y, method="x"), ValueError, "expected 'auto', 'fft', or 'direct'"),
    "ranks": (lambda: signal.convolve(X, IMAGE), ValueError, "same number of dimensions"),
    "empty": (lambda: signal.convolve(X, X[:0]), ValueError, "zero-size"),
    "valid": (lambda: signal.convolve(IMAGE, IMAGE[:3].T, mode="valid"), ValueError, "smaller than the other"),
    "boundary": (lambda: signal.convolve2d(IMAGE, KERNEL, boundary="wrap"), NotImplementedError, "boundary='fill'"),
    "plane": (lambda: signal.correlate2d(X, Y), ValueError, "2-dimensional"),
    "fftconvolve": (lambda: signal.fftconvolve(IMAGE, KERNEL, axes=1), ValueError, "mapped axes must have same shape"),
    "neither is smaller": (lambda: signal.convolve(IMAGE[:3, :1], KERNEL[:1]), ValueError, "One input must be smaller"),
    "trend": (lambda: signal.detrend(X, type="x"), ValueError, "'linear' or 'constant'"),
    "overwrite": (lambda: signal.detrend(X, overwrite_data=True), NotImplementedError, "overwrite_data"),
    "breakpoints": (lambda: signal.detrend(X, bp=99), ValueError, "Breakpoints"),
    "window": (lambda: signal.welch(SIGNAL, window="foo"), ValueError, "Invalid window name 'foo'"),
    "window length": (lambda: signal.stft(SIGNAL, window=np.ones(8), nperseg=9), ValueError, "different from length"),
    "overlap": (lambda: signal.stft(SIGNAL, nperseg=8, noverlap=8), ValueError, "less than nperseg"),
    "nfft": (lambda: signal.stft(SIGNAL, nperseg=8, nfft=4), ValueError, "greater than or equal to nperseg"),
    "ends": (lambda: signal.stft(SIGNAL, nperseg=8, boundary="x"), ValueError, "Unknown boundary option 'x'"),
    "scaling": (lambda: signal.welch(SIGNAL, scaling="x"), ValueError, "Unknown scaling"),
    "average": (lambda: signal.welch(SIGNAL, average="x"), ValueError, "average must be"),
    "axes of istft": (
        lambda: signal.istft(IMAGE, time_axis=0, freq_axis=0),
        ValueError,
        "differing time and frequency",
    ),
    "dct type": (lambda: fft.dct(X, type=3), NotImplementedError, "Only dct type 2"),
    "dct norm": (lambda: fft.idct(X, norm="x"), ValueError, "norm='x'"),
    "dctn lengths": (lambda: fft.dctn(IMAGE, s=(1, 2, 3), axes=(0,)), ValueError, "same length"),
    "map order": (lambda: ndimage.map_coordinates(IMAGE, PLACES, order=3), NotImplementedError, "order<=1"),
    "map mode": (lambda: ndimage.map_coordinates(IMAGE, PLACES, 1, mode="x"), NotImplementedError, "mode x"),
    "map rank": (lambda: ndimage.map_coordinates(X, PLACES, 1), ValueError, "sequence of length input.ndim"),
    "grid method": (lambda: interpolate.RegularGridInterpolator([X], X, method="x"), ValueError, "'x' is not defined"),
    "grid errors": (lambda: interpolate.RegularGridInterpolator([X], X, bounds_error=True), NotImplementedError, "JIT"),
    "grid order": (lambda: interpolate.RegularGridInterpolator([X], X), ValueError, "strictly ascending"),
    "grid lengths": (lambda: interpolate.RegularGridInterpolator([Y], X), ValueError, "in dimension 0"),
    "grid points": (lambda: grid("linear", None).fun(np.ones((3, 4)), np.ones((2, 3))), ValueError, "have dimension 3"),
    "codes": (lambda: cluster.vq.vq(IMAGE, KERNEL), ValueError, "differ in length"),
    "code ranks": (lambda: cluster.vq.vq(IMAGE, X), ValueError, "same rank"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()


def test_runs_compiled_on_the_cpu():
    with polyax.default_device("cpu"):
        for name in ("convolve full direct", "map_coordinates reflect 1", "RegularGridInterpolator"):
            check_values(ROWS[name])


@pytest.mark.parametrize("name", ["dct", "idct"])
def test_cosine_transforms_of_complex_numbers(name):
    x = np.random.default_rng(3).standard_normal((2, 3, 5)).astype(np.float32)
    z = (x[0] + 1j * x[1]).astype(np.complex64)
    got, want = getattr(fft, name)(z, axis=0, norm="ortho"), getattr(scipy.fft, name)(z, axis=0, norm="ortho")
    assert got.dtype == np.complex64
    np.testing.assert_allclose(got, want, atol=1e-6)


def test_maps_of_integers_round_halves_away_from_zero():
    found = ndimage.map_coordinates(np.arange(12).reshape(3, 4), [np.array([0.5]), np.array([0.5])], order=1)
    assert found.tolist() == [3]


def test_segments_longer_than_the_signal_are_shortened_with_a_warning():
    with pytest.warns(UserWarning, match="nperseg=99 is greater than input_length=8, using nperseg=8"):
        assert signal.stft(SIGNAL[0, :8], nperseg=99)[0].shape == (5,)


def test_complex_signals_have_two_sides_with_a_warning():
    with pytest.warns(UserWarning, match="Input data is complex, switching to return_onesided=False"):
        assert signal.welch(SIGNAL * 1j, nperseg=16)[0].shape == (16,)


def test_the_spectrum_of_nothing_is_nothing():
    assert [x.shape for x in signal.welch(np.zeros((2, 0)))] == [(2, 0), (2, 0)]


def test_the_spectrum_of_one_signal_is_real():
    assert signal.csd(SIGNAL.astype(np.float32), None, nperseg=16)[1].dtype == np.float32


def test_interpolators_fill_with_what_fits_their_values():
    points, values = (np.arange(3.0), np.arange(2.0)), np.ones((3, 2))
    with pytest.raises(ValueError, match="of a type compatible with values"):
        interpolate.RegularGridInterpolator(points, values, fill_value=1j)
    inside = interpolate.RegularGridInterpolator(points, values)
    assert all(hasattr(x, "aval") for x in polyax.tree.leaves(inside)) and inside((0.5, 0.5)).shape == ()
    with pytest.raises(TypeError, match="requires ndarray or scalar arguments"):
        inside([[0.5, 0.5]])


def test_places_and_rotations_may_be_lists():
    assert ndimage.map_coordinates([[1.0, 2.0], [3.0, 4.0]], [[0.5], [0.5]], order=1).tolist() == [2.5]
    assert Rotation.from_quat([0, 0, 0, 1]).as_quat().tolist() == [0, 0, 0, 1]
    assert Rotation.from_matrix([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]]).as_quat().tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("mode", ["wrap", "reflect", "mirror", "nearest", "constant"])
def test_halves_go_to_the_element_farther_from_zero(mode: str) -> None:
    places = np.float32([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 6.5])
    want = scipy.ndimage.map_coordinates(np.arange(8.0), [places], order=0, mode=mode)
    got = ndimage.map_coordinates(np.arange(8, dtype=np.float32), [places], order=0, mode=mode)
    np.testing.assert_array_equal(got, want)
