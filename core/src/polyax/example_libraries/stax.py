"""``polyax.example_libraries.stax``: layers of neural networks as pairs of functions.

A layer is a pair: ``init_fun(rng, input_shape)`` gives the shape of the output and parameters, and ``apply_fun(params,
inputs, rng=key)`` the output; layers that draw random numbers need ``rng``. ``serial`` and ``parallel`` make layers of
layers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from polyax import numpy as jnp
from polyax import random
from polyax.lax import lenient as lax
from polyax.nn import elu, gelu, leaky_relu, log_softmax, relu, selu, sigmoid, softmax, softplus, standardize
from polyax.nn.initializers import glorot_normal, normal, ones, zeros

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu", "Exp", "FanInConcat",
    "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv", "GeneralConvTranspose", "Identity", "LeakyRelu",
    "LogSoftmax", "MaxPool", "Relu", "Selu", "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "elu",
    "gelu", "glorot", "glorot_normal", "leaky_relu", "log_softmax", "logsoftmax", "normal", "ones", "parallel", "randn",
    "relu", "selu", "serial", "shape_dependent", "sigmoid", "softmax", "softplus", "standardize", "zeros",
]  # fmt: skip

randn, glorot, logsoftmax = normal, glorot_normal, log_softmax
Shape = tuple[int, ...]
Layer = tuple[Callable[..., Any], Callable[..., Any]]
_GLOROT, _SMALL, _TINY = glorot_normal(), normal(), normal(1e-6)

# --- layers with parameters -------------------------------------------------------------------------------------------


def Dense(out_dim: int, W_init: Any = _GLOROT, b_init: Any = _SMALL) -> Layer:
    """``x @ W + b`` along the last dimension.

    >>> init, apply = Dense(3)
    >>> shape, params = init(random.PRNGKey(0), (2, 4))
    >>> shape, apply(params, jnp.ones((2, 4))).shape
    ((2, 3), (2, 3))
    """

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        k1, k2 = random.split(rng)
        return (*input_shape[:-1], out_dim), (W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,)))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        return jnp.dot(inputs, weights) + bias

    return init_fun, apply_fun


def GeneralConv(
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _TINY,
) -> Layer:
    """A convolution in the layouts ``dimension_numbers``, and a bias for each channel."""

    def convolve(x: Any, w: Any, steps: Any) -> Any:
        return lax.conv_general_dilated(x, w, steps, padding, dimension_numbers=tuple(dimension_numbers))

    shape_of = lax.conv_general_shape_tuple
    return _convolution(convolve, shape_of, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


def GeneralConvTranspose(
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _TINY,
) -> Layer:
    """A transposed convolution in the layouts ``dimension_numbers``, and a bias for each channel."""

    def convolve(x: Any, w: Any, steps: Any) -> Any:
        return lax.conv_transpose(x, w, steps, padding, dimension_numbers=tuple(dimension_numbers))

    shape_of = lax.conv_transpose_shape_tuple
    return _convolution(convolve, shape_of, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


def _convolution(
    convolve: Any, shape_of: Any, layouts: Any, channels: int, window: Any, strides: Any, padding: Any, W_init: Any,
    b_init: Any,
) -> Layer:  # fmt: skip
    _, rhs, out = layouts
    steps = tuple(strides or (1,) * len(window))
    W_init = W_init or glorot_normal(rhs.index("I"), rhs.index("O"))

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        sizes = iter(window)
        ends = {"O": channels, "I": input_shape[layouts[0].index("C")]}
        kernel = tuple(ends[c] if c in ends else next(sizes) for c in rhs)
        shape = shape_of(input_shape, kernel, steps, padding, tuple(layouts))
        k1, k2 = random.split(rng)
        bias = tuple(channels if c == "C" else 1 for c in out)
        return shape, (W_init(k1, kernel), b_init(k2, bias))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        return convolve(inputs, weights, steps) + bias

    return init_fun, apply_fun


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """Mean 0 and variance 1 over ``axis``, then scaled by ``gamma`` and shifted by ``beta``, if asked for."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        k1, k2 = random.split(rng)
        beta, gamma = beta_init(k1, shape) if center else (), gamma_init(k2, shape) if scale else ()
        return input_shape, (beta, gamma)

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        z = standardize(x, axes, epsilon=epsilon)
        if scale:
            z = jnp.expand_dims(gamma, axes) * z
        return z + jnp.expand_dims(beta, axes) if center else z

    return init_fun, apply_fun


# --- layers without -------------------------------------------------------------------------------------------------


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A layer that applies ``fun(x, **fun_kwargs)``."""
    return lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


Tanh, Relu, Exp, Elu, Selu = map(elementwise, (jnp.tanh, relu, jnp.exp, elu, selu))
LogSoftmax, Softmax = elementwise(log_softmax, axis=-1), elementwise(softmax, axis=-1)
Softplus, Sigmoid, LeakyRelu, Gelu = map(elementwise, (softplus, sigmoid, leaky_relu, gelu))
Identity: Layer = (lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: inputs)


def _pooling(
    name: str, doc: str, reducer: Any, init_val: float, rescale: Callable[..., Any] | None = None
) -> Callable[..., Layer]:
    def pooling(
        window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID",
        spec: str | None = None,
    ) -> Layer:  # fmt: skip
        steps = tuple(strides or (1,) * len(window_shape))
        layout = spec or f"N{'XYZ'[: len(window_shape)]}C"
        dims, moves = (_around(layout, sizes) for sizes in (tuple(window_shape), steps))

        def init_fun(rng: Any, input_shape: Shape) -> Any:
            pads = lax.padtype_to_pads(input_shape, dims, moves, padding)
            ones = (1,) * len(dims)
            return tuple(lax.reduce_window_shape_tuple(input_shape, dims, moves, pads, ones, ones)), ()

        def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
            out = lax.reduce_window(inputs, jnp.asarray(init_val, inputs.dtype)[()], reducer, dims, moves, padding)
            return rescale(out, inputs, dims, moves, padding) if rescale else out

        return init_fun, apply_fun

    pooling.__name__ = pooling.__qualname__ = name
    pooling.__doc__ = doc
    return pooling


def _around(layout: str, sizes: Shape) -> Shape:
    """Sizes of the spatial dimensions, and 1 for batch and channels."""
    rest = iter(sizes)
    return tuple(1 if c in "NC" else next(rest) for c in layout)


def _mean(out: Any, inputs: Any, dims: Any, moves: Any, padding: Any) -> Any:
    """Sums over the numbers of elements that windows hold, which are fewer at the edges."""
    return out / lax.reduce_window(jnp.ones_like(inputs), jnp.zeros((), inputs.dtype), lax.add, dims, moves, padding)


MaxPool = _pooling("MaxPool", "The largest element of each window.", lax.max, -jnp.inf)
SumPool = _pooling("SumPool", "The sum of each window.", lax.add, 0.0)
AvgPool = _pooling("AvgPool", "The mean of each window.", lax.add, 0.0, _mean)


def _flatten() -> Layer:
    def init_fun(rng: Any, input_shape: Shape) -> Any:
        size = 1
        for n in input_shape[1:]:
            size *= n
        return (input_shape[0], size), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], -1))


Flatten = _flatten()


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Keeps each element with the probability ``rate``, and divides it by that; the identity unless ``mode`` is
    ``"train"``.

    Raises:
      ValueError: ``apply_fun`` is called without ``rng``.
    """

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument. That is, instead of "
                "`apply_fun(params, inputs)`, call it like `apply_fun(params, inputs, rng)` where `rng` is a PRNG key "
                "(e.g. from `polyax.random.key`)."
            )
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return lambda rng, input_shape: (input_shape, ()), apply_fun


# --- layers of layers -------------------------------------------------------------------------------------------------


def FanOut(num: int) -> Layer:
    """A list of ``num`` times the input."""
    return lambda rng, input_shape: ([input_shape] * num, ()), lambda params, inputs, **kwargs: [inputs] * num


FanInSum: Layer = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **kwargs: functools.reduce(jnp.add, inputs),
)
"""The sum of a list of arrays of one shape."""


def FanInConcat(axis: int = -1) -> Layer:
    """A list of arrays, side by side along ``axis``."""

    def init_fun(rng: Any, input_shape: Sequence[Shape]) -> Any:
        shape = list(input_shape[0])
        shape[axis] = sum(s[axis] for s in input_shape)
        return tuple(shape), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def serial(*layers: Layer) -> Layer:
    """One layer after the other; parameters are a list of theirs, and each gets a random key of its own.

    >>> init, apply = serial(Dense(8), Relu, Dense(1))
    >>> init(random.PRNGKey(0), (5, 3))[0]
    (5, 1)
    """
    inits, applies = [i for i, _ in layers], [a for _, a in layers]

    def init_fun(rng: Any, input_shape: Any) -> Any:
        params = []
        for init in inits:
            rng, own = random.split(rng)
            input_shape, found = init(own, input_shape)
            params.append(found)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        for apply, own, key in zip(applies, params, keys, strict=True):
            inputs = apply(own, inputs, rng=key, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """A layer of lists: each layer gets the input of its place, and gives the output there. See ``FanOut``."""
    inits, applies = [i for i, _ in layers], [a for _, a in layers]

    def init_fun(rng: Any, input_shape: Any) -> Any:
        keys = random.split(rng, len(layers))
        found = [init(key, shape) for init, key, shape in zip(inits, keys, input_shape, strict=True)]
        return [shape for shape, _ in found], tuple(params for _, params in found)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        rows = zip(applies, params, inputs, keys, strict=True)
        return [apply(own, x, rng=key, **kwargs) for apply, own, x, key in rows]

    return init_fun, apply_fun


def _keys(rng: Any, count: int) -> Any:
    return [None] * count if rng is None else random.split(rng, count)


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """A layer that ``make_layer`` makes for a shape of its input, each time that it is used."""

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape), apply_fun
