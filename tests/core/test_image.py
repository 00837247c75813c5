"""Images resampled, against plain loops over pixels and numbers recorded from JAX."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
from polyax import image
from support.rows import Row, check_derivatives, check_jit, check_values, check_vmap

RNG = np.random.default_rng(2)
PICTURE = RNG.uniform(size=(5, 4, 2))
KERNELS = {
    "linear": lambda x: max(0.0, 1 - x),
    "cubic": lambda x: 1.5 * x**3 - 2.5 * x**2 + 1 if x < 1 else -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0,
    "lanczos3": lambda x: np.sinc(x) * np.sinc(x / 3) if x <= 3 else 0.0,
    "lanczos5": lambda x: np.sinc(x) * np.sinc(x / 5) if x <= 5 else 0.0,
}


def resampled(x, new, axis, scale, translation, method, antialias):
    """A loop over the samples of one dimension."""
    lines = np.moveaxis(x, axis, 0)
    out = np.zeros((new, *lines.shape[1:]))
    width = max(1 / scale, 1) if antialias else 1
    for j in range(new):
        centre = (j + 0.5 - translation) / scale - 0.5
        weights = np.array([KERNELS[method](abs(centre - i) / width) for i in range(len(lines))])
        if -0.5 <= centre <= len(lines) - 0.5:
            out[j] = np.tensordot(weights / weights.sum(), lines, 1)
    return np.moveaxis(out, 0, axis)


def loop(x, shape, method, antialias=True):
    for axis, (old, new) in enumerate(zip(x.shape, shape)):
        if old != new:
            x = resampled(x, new, axis, new / old, 0.0, method, antialias)
    return x


def edges_continued(x, shape):
    """Without antialiasing, with the kernel of OpenCV, on an image continued by its edges."""
    for axis, (old, new) in enumerate(zip(x.shape, shape)):
        lines = np.moveaxis(x, axis, 0)
        out = np.zeros((new, *lines.shape[1:]))
        for j in range(new):
            centre = (j + 0.5) * old / new - 0.5
            for i in range(-3, old + 3):
                d = abs(centre - i)
                near, far = 1.25 * d**3 - 2.25 * d**2 + 1, -0.75 * (d**3 - 5 * d**2 + 8 * d - 4)
                out[j] += (near if d < 1 else far if d < 2 else 0) * lines[np.clip(i, 0, old - 1)]
        x = np.moveaxis(out, 0, axis)
    return x


def covered(x, shape):
    """The means of what new pixels cover, on a grid that divides both."""
    for axis, (old, new) in enumerate(zip(x.shape, shape)):
        fine = np.repeat(np.moveaxis(x, axis, 0), new, 0)
        x = np.moveaxis(fine.reshape(new, old, *fine.shape[1:]).mean(1), 0, axis)
    return x


def moved(x, scale, translation, method="cubic"):
    for axis in (0, 1):
        x = resampled(x, 6, axis, scale[axis], translation[axis], method, True)
    return x


ROWS = {
    **{
        f"resize {method} {shape} {antialias}": Row(
            lambda x, m=method, s=shape, a=antialias: image.resize(x, s, m, a),
            lambda x, m=method, s=shape, a=antialias: loop(x, s, m, a),
            (PICTURE,),
            (0,),
        )
        for method in KERNELS
        for shape in ((8, 4, 2), (3, 2, 2))
        for antialias in (True, False)
    },
    **{
        f"scale_and_translate {method}": Row(
            lambda x, s, t, m=method: image.scale_and_translate(x, (6, 6, 2), (0, 1), s, t, m),
            lambda x, s, t, m=method: moved(x, s, t, m),
            (PICTURE, np.array([1.3, 0.6]), np.array([0.4, 1.3])),
            (0, 1, 2),
            slope=1e-5,
        )
        for method in ("cubic", "lanczos3")
    },
    **{
        f"{method} {shape}": Row(
            lambda x, m=method, s=shape: image.resize(x, s, m, antialias=False),
            lambda x, e=expected, s=shape: e(x, s),
            (PICTURE,),
            (0,),
        )
        for method, expected in (("area", covered), ("cubic-pytorch", edges_continued))
        for shape in ((8, 3, 2), (3, 9, 2))
    },
    "nearest": Row(
        lambda x: image.resize(x, (7, 3, 2), "nearest"),
        lambda x: x[[0, 1, 1, 2, 3, 3, 4]][:, [0, 2, 3]],
        (PICTURE,),
        (0,),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_agrees_with_a_loop(name):
    check_values(ROWS[name])
    check_derivatives(ROWS[name])


@pytest.mark.parametrize("name", ROWS)
def test_compiled_and_mapped(name):
    check_jit(ROWS[name])
    check_vmap(ROWS[name])


def test_integers_become_floats_but_for_the_nearest():
    x = np.arange(6, dtype=np.uint8).reshape(2, 3)
    assert image.resize(x, (4, 3), "linear").dtype == np.float32
    assert image.resize(x, (4, 3), "nearest").dtype == np.uint8


def test_methods_have_several_names():
    assert image.ResizeMethod.from_string("bilinear") is image.ResizeMethod.LINEAR
    got = [image.resize(PICTURE, (3, 3, 2), m) for m in ("cubic", "bicubic", image.ResizeMethod.CUBIC)]
    np.testing.assert_array_equal(got[0], got[1])
    np.testing.assert_array_equal(got[0], got[2])
    np.testing.assert_array_equal(got[0], image.resize(PICTURE, (3, 3, 2), "bicubic-pytorch"))


BAD = {
    "method": (lambda: image.resize(PICTURE, (3, 3, 2), "x"), ValueError, 'Unknown resize method "x"'),
    "no name": (lambda: image.resize(PICTURE, (3, 3, 2), 3), TypeError, "a ResizeMethod or the name of one, got 3"),
    "rank": (lambda: image.resize(PICTURE, (3, 3), "linear"), ValueError, "shape must have length equal"),
    "nearest": (
        lambda: image.scale_and_translate(PICTURE, (3, 3, 2), (0,), np.ones(1), np.ones(1), "nearest"),
        ValueError,
        "Nearest neighbor",
    ),
    "scale": (
        lambda: image.scale_and_translate(PICTURE, (3, 3, 2), (0,), np.ones(2), np.ones(1), "linear"),
        ValueError,
        "scale has shape \\(2,\\)",
    ),
    "name": (lambda: polyax.picture, AttributeError, "no attribute 'picture'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()
