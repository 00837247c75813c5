"""Images resampled: each dimension alone, by a matrix of a kernel's weights.

A sample reads its neighbours through the kernel, which antialiasing widens where an image becomes smaller; weights of a
sample add up to 1, and a sample outside of the image is 0.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.ir.dims import is_symbolic_dim
from polyax.lax import lenient as lax
from polyax.numpy.promotion import canonicalize_axis, concrete_shape, ensure_array, inexact

Kernel = Callable[[Any], Any]


def _triangle(x: Any) -> Any:
    return jnp.maximum(0, 1 - jnp.abs(x))


def _keys_cubic(x: Any) -> Any:
    """Keys, "Cubic convolution interpolation for digital image processing" (1981), with a = -1/2."""
    near = ((1.5 * x - 2.5) * x) * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return jnp.where(x >= 2, 0, jnp.where(x >= 1, far, near))


def _steep_cubic(x: Any) -> Any:
    """The cubic of Keys with a = -3/4, as OpenCV and PyTorch have it."""
    a = -0.75
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return jnp.where(x >= 2, 0, jnp.where(x >= 1, far, near))


def _lanczos(radius: float) -> Kernel:
    def kernel(x: Any) -> Any:
        value = jnp.sinc(x) * jnp.sinc(x / radius)
        return jnp.where(x > radius, 0, value)

    return kernel


class ResizeMethod(enum.Enum):
    """How an image is read between its pixels."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of that name.

        Raises:
          ValueError: there is none.
        """
        if s not in _NAMES:
            raise ValueError(f'Unknown resize method "{s}"')
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}
_KERNELS: dict[ResizeMethod, Kernel] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
    ResizeMethod.CUBIC: _keys_cubic,
    ResizeMethod.CUBIC_PYTORCH: _keys_cubic,
}


def _method(method: Any) -> ResizeMethod:
    if isinstance(method, str):
        return ResizeMethod.from_string(method)
    if not isinstance(method, ResizeMethod):
        raise TypeError(f"method must be a ResizeMethod or the name of one, got {method!r}")
    return method


def scale_and_translate(
    image: Any,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: Any,
    translation: Any,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Any:
    """An image scaled and moved along some of its dimensions; where the result lies outside of it, 0.

    Args:
      shape: of the result, with all dimensions.
      spatial_dims: along which it is scaled.
      scale, translation: a number for each of these; a pixel that is centred at x goes to ``x * scale + translation``.
      method: 'linear', 'cubic', 'cubic-pytorch', 'lanczos3', 'lanczos5', 'area', or a ``ResizeMethod``.
      antialias: whether kernels are widened where the image becomes smaller.
      precision: of the products.

    Raises:
      ValueError: 'nearest', which has no kernel; or shapes that don't fit.

    >>> print(scale_and_translate(np.array([1.0, 3.0]), (2,), (0,), np.ones(1), np.array([0.5]), "linear"))
    [1. 2.]
    """
    shape = _shape_like(image, shape)
    kind = _method(method)
    if kind == ResizeMethod.NEAREST:
        raise ValueError("Nearest neighbor resampling is not currently supported for scale_and_translate.")
    x = inexact("scale_and_translate", image)[0]
    scale, translation = inexact("scale_and_translate", scale, translation)
    dims = [canonicalize_axis(d, x.ndim) for d in spatial_dims]
    for name, given in (("scale", scale), ("translation", translation)):
        if given.shape != (len(dims),):
            raise ValueError(f"{name} has shape {given.shape}, one number for each of {len(dims)} dimensions is needed")
    for i, d in enumerate(dims):
        weights = _weights(x.shape[d], shape[d], scale[i], translation[i], kind, antialias)
        x = _applied(x, weights.astype(x.dtype), d, precision)
    return x


def _shape_like(image: Any, shape: Sequence[int]) -> tuple[int, ...]:
    shape = concrete_shape(shape)
    if len(shape) != jnp.ndim(image):
        raise ValueError(
            f"shape must have length equal to the number of dimensions of x; {shape} vs {jnp.shape(image)}"
        )
    return shape


def _applied(x: Any, weights: Any, axis: int, precision: Any) -> Any:
    """The matrix ``weights[old, new]`` along an axis."""
    return jnp.moveaxis(jnp.tensordot(x, weights, axes=((axis,), (0,)), precision=precision), -1, axis)


def _weights(old: int, new: int, scale: Any, translation: Any, kind: ResizeMethod, antialias: bool) -> Any:
    """``weights[old, new]``: how much of each pixel is in each new one."""
    inverse = 1.0 / scale
    centres = (jnp.arange(new, dtype=scale.dtype) + 0.5) * inverse - translation * inverse - 0.5
    if kind == ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _normalized(_on_edges(_steep_cubic(_distances(old + 4, centres + 2))))
    if kind == ResizeMethod.AREA:
        weights = _overlaps(old, centres + 0.5, inverse)
    else:
        width = jnp.maximum(inverse, 1.0) if antialias else 1.0
        weights = _KERNELS[kind](_distances(old, centres) / width)
    return jnp.where((centres >= -0.5) & (centres <= old - 0.5), _normalized(weights), 0)


def _distances(old: int, centres: Any) -> Any:
    return jnp.abs(centres - jnp.arange(old, dtype=centres.dtype)[:, None])


def _overlaps(old: int, middles: Any, width: Any) -> Any:
    """How much of the pixels from n to n + 1 lies within half a ``width`` of ``middles``."""
    left = jnp.arange(old, dtype=middles.dtype)[:, None]
    shared = jnp.minimum(middles + width / 2, left + 1) - jnp.maximum(middles - width / 2, left)
    return jnp.maximum(shared, 0)


def _on_edges(weights: Any) -> Any:
    """The weights of two pixels before the image and of two behind it, given to its first and its last."""
    inside = weights[2:-2]
    inside = inside.at[0].add(weights[:2].sum(0))
    return inside.at[-1].add(weights[-2:].sum(0))


def _normalized(weights: Any) -> Any:
    total = jnp.sum(weights, axis=0, keepdims=True)
    present = jnp.abs(total) > 1000.0 * float(np.finfo(np.float32).eps)
    return jnp.where(present, weights / jnp.where(total != 0, total, 1), 0)


def resize(
    image: Any,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Any:
    """An image of another size.

    Args:
      shape: of the result, with all dimensions.
      method: 'nearest', 'linear' ('bilinear', 'trilinear', 'triangle'), 'cubic' ('bicubic', 'tricubic'),
        'cubic-pytorch' ('bicubic-pytorch': 'cubic', but without antialiasing steeper, with the edges of the image
        continued), 'lanczos3', 'lanczos5', 'area' (means of what a new pixel covers), or a ``ResizeMethod``.
      antialias: whether kernels are widened where the image becomes smaller.
      precision: of the products.

    Raises:
      ValueError: another method, or another number of dimensions.
      TypeError: a method that is neither a name nor a ``ResizeMethod``.

    >>> print(resize(np.array([1.0, 3.0]), (4,), "linear"))
    [1.  1.5 2.5 3. ]
    """
    shape = _shape_like(image, shape)
    kind = _method(method)
    x = ensure_array("resize", image)
    if kind == ResizeMethod.NEAREST:
        return _nearest(x, shape)
    x = inexact("resize", x)[0]
    moved = [d for d in range(x.ndim) if shape[d] != x.shape[d]]
    scale = jnp.asarray([1.0 if shape[d] == 0 else shape[d] / x.shape[d] for d in moved], x.real.dtype)
    return scale_and_translate(x, shape, moved, scale, jnp.zeros_like(scale), kind, antialias, precision)


def _nearest(x: Any, shape: Sequence[int]) -> Any:
    for axis, (old, new) in enumerate(zip(x.shape, shape, strict=True)):
        if old != new:
            xp: Any = jnp if is_symbolic_dim(old) or is_symbolic_dim(new) else np
            places = xp.floor((xp.arange(new) + 0.5) * (old / max(new, 1))).astype(np.int32)
            x = jnp.take(x, places, axis=axis)
    return x
