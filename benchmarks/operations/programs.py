"""Programs of several operations, each written once for NumPy's names, which PyTorch has too: what compilers fuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isqrt
from typing import Any

from operations.operation import Arrays, Operation, normal, square, vector, vectors

EVERY = ("small", "cache", "memory")
SHORT = ("small", "cache")


def operations() -> Iterator[Operation]:
    yield _program("damped sines", _damped_sines, vector)
    yield _program("mandelbrot", _mandelbrot, vectors, gradient=False)
    yield _program("squared error", lambda np, x, y: np.sum((x - y) ** 2), vectors)
    yield _program("adam", _adam, lambda n: (*vectors(n), normal(n), normal(n) ** 2), gradient=False)
    yield _program("layer norm", _layer_norm, _rows_and_two)
    yield _program("bias and gelu", _bias_and_gelu, _rows_and_two)
    yield _program("masked softmax", _masked_softmax, square)
    yield _program("rows and columns", _rows_and_columns, square)
    yield _program("forces", _forces, lambda n: (normal(isqrt(n), 3),), SHORT)
    yield _program("perceptron", _perceptron, _layers, SHORT)
    yield _program("attention heads", _attention_heads, lambda n: (normal(8, isqrt(n // 8), 64),), SHORT)
    yield _program("recurrent", _recurrent, _recurrent_arrays, SHORT)
    yield _program("separable filter", _separable_filter, square)


def _program(
    name: str,
    call: Callable[..., Any],
    inputs: Callable[[int], Arrays],
    sizes: tuple[str, ...] = EVERY,
    *,
    gradient: bool = True,
) -> Operation:
    return Operation(name, lambda m, *a: call(m.numpy, *a), inputs, sizes, gradient, torch=call)


def _rows_and_two(n: int) -> Arrays:
    """Rows of 512 elements, a scale and a shift of such a row."""
    width = min(512, isqrt(n))
    return normal(n // width, width), 1 + 0.1 * normal(width), normal(width)


def _layers(n: int) -> Arrays:
    width = isqrt(n)
    weights = [normal(width, width) / width**0.5 for _ in range(3)]
    return (normal(width, width), *weights)


def _recurrent_arrays(n: int) -> Arrays:
    width = min(128, isqrt(n // 16))
    return normal(16, n // (16 * width), width), 0.5 * normal(width, width) / width**0.5


def _damped_sines(np: Any, x: Any) -> Any:
    for _ in range(5):
        x = 0.5 * x + 0.1 * np.sin(x)
    return x


def _mandelbrot(np: Any, x: Any, y: Any) -> Any:
    """In how many of 20 steps the point stays within the circle."""
    a, b, stays = x, y, 0.0 * x
    for _ in range(20):
        a, b = a * a - b * b + x, 2 * a * b + y
        inside = a * a + b * b < 4.0
        stays = np.where(inside, stays + 1.0, stays)
        a, b = np.where(inside, a, 2.0), np.where(inside, b, 0.0)
    return stays


def _adam(np: Any, weights: Any, slopes: Any, mean: Any, square: Any) -> Any:
    mean, square = 0.9 * mean + 0.1 * slopes, 0.999 * square + 0.001 * slopes * slopes
    return weights - 1e-3 * (mean / 0.1) / (np.sqrt(square / 0.001) + 1e-8), mean, square


def _layer_norm(np: Any, x: Any, scale: Any, shift: Any) -> Any:
    centred = x - np.mean(x, 1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, 1, keepdims=True) + 1e-5) * scale + shift


def _rows_and_columns(np: Any, x: Any) -> Any:
    return (x - np.mean(x, 1, keepdims=True)) / np.sqrt(np.mean(x * x, 0, keepdims=True) + 1e-6)


def _bias_and_gelu(np: Any, x: Any, scale: Any, shift: Any) -> Any:
    x = x * scale + shift
    return 0.5 * x * (1 + np.tanh(0.7978846 * (x + 0.044715 * x * x * x)))


def _masked_softmax(np: Any, x: Any) -> Any:
    """Each row of a square sees the columns up to its own."""
    x = np.where(np.tril(np.ones_like(x)) > 0, 0.125 * x, -1e9)
    weights = np.exp(x - np.amax(x, 1, keepdims=True))
    return weights / np.sum(weights, 1, keepdims=True)


def _forces(np: Any, x: Any) -> Any:
    """Of every point on every other, softened."""
    apart = x[None] - x[:, None]
    return np.sum(apart / ((np.sum(apart * apart, 2) + 1e-2) ** 1.5)[..., None], 1)


def _perceptron(np: Any, x: Any, *weights: Any) -> Any:
    for w in weights:
        x = np.tanh(x @ w)
    return x


def _attention_heads(np: Any, x: Any) -> Any:
    weights = 0.125 * (x @ np.swapaxes(x, 1, 2))
    weights = np.exp(weights - np.amax(weights, 2, keepdims=True))
    return weights / np.sum(weights, 2, keepdims=True) @ x


def _recurrent(np: Any, xs: Any, w: Any) -> Any:
    """Sixteen steps, written out: PyTorch has no scan."""
    state = xs[0]
    for x in xs:
        state = np.tanh(state @ w + x)
    return state


def _separable_filter(np: Any, x: Any) -> Any:
    """Five places down, five across; edges wrap around."""
    for axis in (0, 1):
        rolled = [np.roll(x, shift, axis) for shift in (-2, -1, 0, 1, 2)]
        x = sum(weight * r for weight, r in zip((0.06, 0.24, 0.4, 0.24, 0.06), rolled))
    return x
