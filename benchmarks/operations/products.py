"""Products of matrices, einsums, convolutions and attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isqrt
from typing import Any

from operations.operation import Arrays, Operation, cast, normal

NARROW = ("bfloat16", "float16", "float64", "complex64", "int8", "int32")
BATCHED = (2, 4, 8, 32)
CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "1d": ((8, 32, 1000), (64, 32, 5), {}),
    "1d[causal]": ((8, 16, 4000), (16, 16, 3), {"rhs_dilation": (4,)}),
    "2d[3x3]": ((8, 32, 56, 56), (64, 32, 3, 3), {}),
    "2d[1x1]": ((8, 64, 56, 56), (64, 64, 1, 1), {}),
    "2d[7x7 stem]": ((4, 3, 112, 112), (64, 3, 7, 7), {"window_strides": (2, 2)}),
    "2d[strided]": ((8, 64, 56, 56), (128, 64, 3, 3), {"window_strides": (2, 2)}),
    "2d[dilated]": ((8, 32, 56, 56), (32, 32, 3, 3), {"rhs_dilation": (2, 2)}),
    "2d[grouped]": ((8, 64, 56, 56), (64, 8, 3, 3), {"feature_group_count": 8}),
    "2d[depthwise]": ((8, 64, 56, 56), (64, 1, 3, 3), {"feature_group_count": 64}),
    "2d[transposed]": ((8, 32, 28, 28), (32, 32, 4, 4), {"lhs_dilation": (2, 2)}),
    "3d": ((2, 8, 24, 24, 24), (16, 8, 3, 3, 3), {}),
}
"""The shapes of images and kernels, channels first, and options of ``lax.conv_general_dilated``."""


def operations() -> Iterator[Operation]:
    yield _product("matmul", _matrices)
    yield _product("x @ y.T", _matrices, lambda x, y: x @ y.T)
    yield _product("x.T @ y", _matrices, lambda x, y: x.T @ y)
    for dtype in NARROW:
        yield _product(f"{dtype} matmul", cast(_matrices, dtype), gradient=dtype in NARROW[:4])
    yield _product("matrix @ vector", lambda n: (normal(isqrt(n), isqrt(n)), normal(isqrt(n))))
    yield _product("dot", lambda n: (normal(n), normal(n)))
    for side in BATCHED:
        yield _product(f"batch of {side}x{side}", lambda n, s=side: (_stack(n, s), _stack(n, s)))
    yield Operation("einsum[bij,bjk]", lambda m, x: m.numpy.einsum("bij,bkj->bik", x, x), lambda n: (_stack(n, 16),))
    yield Operation("einsum[three]", lambda m, x, y: m.numpy.einsum("ij,jk,k->i", x, y, y[0]), _matrices)
    yield Operation("einsum[no sum]", lambda m, x: m.numpy.einsum("i,j->ij", x[0], x[1]), _two_rows)
    yield Operation("distances", _distances, lambda n: (normal(isqrt(n), 3),))
    for name, (image, kernel, options) in CONVOLUTIONS.items():
        for layout in ("NCHW", "NHWC"):
            if layout == "NCHW" or name.startswith("2d"):
                yield (convolution := _convolution(name, layout, image, kernel, options))
                yield _by_weights(convolution)
    yield Operation("max_pool", _max_pool, lambda n: (normal(8, 56, 56, 32),), ("cache",))
    yield Operation("attention", _attention, lambda n: (normal(2, 128, 4, 32),), ("cache",))


def _product(
    name: str, inputs: Any, call: Callable[[Any, Any], Any] = lambda x, y: x @ y, *, gradient: bool = True
) -> Operation:
    sizes = ("small", "cache") if "matmul" in name or "@ y" in name or ".T" in name else ("small", "cache", "memory")
    forward = lambda m, x, y: call(x, y)
    return Operation(name, forward, inputs, sizes, gradient, torch=forward)


def _matrices(n: int) -> Arrays:
    side = isqrt(2 * n)
    return normal(side, side), normal(side, side) / side


def _two_rows(n: int) -> Arrays:
    return (normal(2, isqrt(n)),)


def _stack(n: int, side: int) -> Any:
    return normal(max(1, n // side**2), side, side)


def _distances(m: Any, x: Any) -> Any:
    return m.numpy.sqrt(m.numpy.sum((x[:, None] - x[None]) ** 2, -1) + 1e-6)


def _convolution(
    name: str, layout: str, image: tuple[int, ...], kernel: tuple[int, ...], options: dict[str, Any]
) -> Operation:
    dims = len(image) - 2
    letters = "HWD"[:dims] if dims < 3 else "DHW"
    first, last = "NC" + letters, "N" + letters + "C"
    spec = (first, "OI" + letters, first) if layout == "NCHW" else (last, letters + "IO", last)
    order = (0, *range(2, dims + 2), 1) if layout == "NHWC" else tuple(range(dims + 2))
    turned = (*range(2, dims + 2), 1, 0) if layout == "NHWC" else tuple(range(dims + 2))
    strides = options.get("window_strides", (1,) * dims)
    padding = [(2, 2)] * dims if "lhs_dilation" in options else "SAME"
    rest = {k: v for k, v in options.items() if k != "window_strides"}

    def call(m: Any, x: Any, w: Any) -> Any:
        return m.lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=spec, **rest)

    def torch(t: Any, x: Any, w: Any) -> Any:
        x, w = x.permute(_inverse(order)), w.permute(_inverse(turned))
        return _in_torch(t, x, w, dims, options).permute(order)

    arrays = lambda n: (normal(*image).transpose(order).copy(), 0.1 * normal(*kernel).transpose(turned).copy())
    return Operation(f"conv {name} {layout}", call, arrays, ("cache",), torch=torch)


def _by_weights(convolution: Operation) -> Operation:
    """The gradient by the kernel; that by the image is made of each operation."""
    in_torch: Any = convolution.torch

    def call(m: Any, x: Any, w: Any) -> Any:
        return m.grad(lambda w: m.numpy.sum(convolution.call(m, x, w) ** 2))(w)

    def torch(t: Any, x: Any, w: Any) -> Any:
        with t.enable_grad():
            w = w.detach().requires_grad_()
            return t.autograd.grad(in_torch(t, x, w).square().sum(), w)[0]

    return Operation(f"dw {convolution.name}", call, convolution.inputs, ("cache",), False, torch)


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(n) for n in range(len(order)))


def _in_torch(t: Any, x: Any, w: Any, dims: int, options: dict[str, Any]) -> Any:
    """PyTorch pads both sides of a strided convolution alike: here it sees other places, and as many."""
    f, groups = t.nn.functional, options.get("feature_group_count", 1)
    if "lhs_dilation" in options:
        turned = w.flip(tuple(range(2, dims + 2))).transpose(0, 1)
        return getattr(f, f"conv_transpose{dims}d")(x, turned, stride=2, padding=(w.shape[-1] - 1) - 2)
    stride, dilation = options.get("window_strides", 1), options.get("rhs_dilation", 1)
    padding = "same" if stride == 1 else w.shape[-1] // 2
    return getattr(f, f"conv{dims}d")(x, w, stride=stride, padding=padding, dilation=dilation, groups=groups)


def _max_pool(m: Any, x: Any) -> Any:
    return m.lax.reduce_window(x, -float("inf"), m.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def _attention(m: Any, x: Any) -> Any:
    return m.nn.dot_product_attention(x, x, x)
