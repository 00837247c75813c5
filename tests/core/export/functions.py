"""Functions of arrays, of which some dimensions can be symbolic."""

from __future__ import annotations

from typing import Any

import numpy as np

import polyax
import polyax.numpy as jnp
from polyax import lax, nn


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 3, shape).astype(np.int32)


FUNCTIONS: dict[str, tuple[Any, list[str], list[Any]]] = {
    "sin": (lambda x: jnp.sin(x), ["b, 3"], [floats(4, 3)]),
    "broadcast": (lambda x: x + jnp.ones((3,)), ["b, 3"], [floats(4, 3)]),
    "broadcast_to": (lambda x: jnp.broadcast_to(x, (2, *x.shape)), ["b, 3"], [floats(4, 3)]),
    "reshape": (lambda x: x.reshape((x.shape[0] * x.shape[1],)), ["b, c"], [floats(4, 3)]),
    "reshape-1": (lambda x: x.reshape((-1,)), ["b, 3"], [floats(4, 3)]),
    "reshape-1c": (lambda x: x.reshape((-1, 2)), ["b, 4"], [floats(3, 4)]),
    "reshape2": (
        lambda x: jnp.reshape(x, (2, -1)),
        ["2*b"],
        [
            floats(
                8,
            )
        ],
    ),
    "one_hot": (lambda x: nn.one_hot(jnp.arange(3), x.shape[0]), ["b"], [floats(4)]),
    "top_k of all": (lambda x: lax.top_k(x, x.shape[0]), ["b"], [floats(4)]),
    "ravel": (lambda x: jnp.ravel(x), ["b, c"], [floats(4, 3)]),
    "take": (lambda x: jnp.take(x, 0, 1), ["b, c"], [floats(4, 3)]),
    "a place": (lambda x: x[3], ["b, c"], [floats(4, 3)]),
    "a place beyond": (lambda x: x[:, 7], ["b, c"], [floats(4, 3)]),
    "a place from the end": (lambda x: x[-3], ["b, c"], [floats(4, 3)]),
    "places from the end": (lambda x: x[np.array([-1, 0])], ["b, c"], [floats(4, 3)]),
    "concat": (lambda x: jnp.concatenate([x, x]), ["b, 3"], [floats(4, 3)]),
    "stack": (lambda x: jnp.stack([x, x], 1), ["b, 3"], [floats(4, 3)]),
    "slice": (lambda x: x[1:], ["b + 1, 3"], [floats(4, 3)]),
    "slice2": (lambda x: x[:, 1:], ["b, 3"], [floats(4, 3)]),
    "slice3": (lambda x: x[:-1], ["b, 3"], [floats(4, 3)]),
    "slice4": (lambda x: x[::2], ["2*b, 3"], [floats(4, 3)]),
    "index": (lambda x: x[0], ["b, 3"], [floats(4, 3)]),
    "indexarr": (
        lambda x, i: x[i],
        ["b, 3", "n"],
        [
            floats(4, 3),
            integers(
                5,
            ),
        ],
    ),
    "newaxis": (lambda x: x[:, None, :], ["b, 3"], [floats(4, 3)]),
    "sum": (lambda x: x.sum(0), ["b, 3"], [floats(4, 3)]),
    "mean": (lambda x: x.mean(0), ["b, 3"], [floats(4, 3)]),
    "var": (lambda x: x.var(0), ["b, 3"], [floats(4, 3)]),
    "max": (lambda x: x.max(), ["b, 3"], [floats(4, 3)]),
    "argmax": (lambda x: x.argmax(0), ["b, 3"], [floats(4, 3)]),
    "cumsum": (lambda x: jnp.cumsum(x, 0), ["b, 3"], [floats(4, 3)]),
    "sort": (lambda x: jnp.sort(x, 0), ["b, 3"], [floats(4, 3)]),
    "argsort": (lambda x: jnp.argsort(x, 0), ["b, 3"], [floats(4, 3)]),
    "matmul": (lambda x, y: x @ y, ["b, c", "c, d"], [floats(4, 3), floats(3, 5)]),
    "bmm": (lambda x, y: x @ y, ["n, b, c", "n, c, d"], [floats(2, 4, 3), floats(2, 3, 5)]),
    "einsum": (
        lambda x, y: jnp.einsum("bij,bjk->bik", x, y),
        ["n, b, c", "n, c, d"],
        [floats(2, 4, 3), floats(2, 3, 5)],
    ),
    "outer": (
        lambda x, y: jnp.outer(x, y),
        ["a", "b"],
        [
            floats(
                4,
            ),
            floats(
                3,
            ),
        ],
    ),
    "transpose": (lambda x: x.T, ["b, c"], [floats(4, 3)]),
    "softmax": (lambda x: nn.softmax(x), ["b, c"], [floats(4, 3)]),
    "logsumexp": (lambda x: nn.logsumexp(x, axis=1), ["b, c"], [floats(4, 3)]),
    "layernorm": (
        lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5),
        ["b, c"],
        [floats(4, 3)],
    ),
    "gelu": (lambda x: nn.gelu(x), ["b, c"], [floats(4, 3)]),
    "onehot": (
        lambda x: nn.one_hot(x, 4),
        ["b"],
        [
            integers(
                5,
            )
        ],
    ),
    "arange": (lambda x: jnp.arange(x.shape[0]) + 0 * x[:, 0].astype(int), ["b, c"], [floats(4, 3)]),
    "arange2": (lambda x: jnp.arange(1, x.shape[0] + 1), ["b, c"], [floats(4, 3)]),
    "linspace": (lambda x: jnp.linspace(0, 1, 5) * x[:, :1], ["b, c"], [floats(4, 3)]),
    "zeros": (lambda x: jnp.zeros(x.shape) + x, ["b, c"], [floats(4, 3)]),
    "full": (lambda x: jnp.full((x.shape[0],), 2.0), ["b, c"], [floats(4, 3)]),
    "tril": (lambda x: jnp.tril(x), ["b, b"], [floats(4, 4)]),
    "eye": (lambda x: jnp.eye(*x.shape, k=x.shape[1] - x.shape[0]) + x, ["b, c"], [floats(4, 3)]),
    "tri": (lambda x: jnp.tri(*x.shape, k=x.shape[1] - x.shape[0]) + x, ["b, c"], [floats(4, 3)]),
    "where": (lambda x: jnp.where(x > 0, x, 0.0), ["b, c"], [floats(4, 3)]),
    "pad": (lambda x: jnp.pad(x, ((1, 2), (0, 0))), ["b, c"], [floats(4, 3)]),
    "tile": (lambda x: jnp.tile(x, (2, 1)), ["b, c"], [floats(4, 3)]),
    "repeat": (lambda x: jnp.repeat(x, 2, axis=0), ["b, c"], [floats(4, 3)]),
    "roll": (lambda x: jnp.roll(x, 1, axis=0), ["b, c"], [floats(4, 3)]),
    "split": (lambda x: jnp.split(x, 2), ["2*b, c"], [floats(4, 3)]),
    "dimvalue": (lambda x: x.shape[0] * x, ["b, c"], [floats(4, 3)]),
    "dimvalue2": (lambda x: jnp.sqrt(x.shape[-1]) * x / x.shape[0], ["b, c"], [floats(4, 3)]),
    "dimvalue3": (lambda x: jnp.array(x.shape[0]) + x, ["b, c"], [floats(4, 3)]),
    "scan": (lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.zeros(3), x), ["b, 3"], [floats(4, 3)]),
    "scanb": (lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.zeros(x.shape[1]), x), ["5, b"], [floats(5, 3)]),
    "map": (lambda x: lax.map(lambda y: y * 2, x), ["b, 3"], [floats(4, 3)]),
    "fori": (lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], jnp.zeros(3)), ["b, 3"], [floats(4, 3)]),
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 10, lambda c: c + 1, x), ["b, 3"], [floats(4, 3)]),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda y: y, lambda y: -y, x), ["b, 3"], [floats(4, 3)]),
    "vmap": (lambda x: polyax.vmap(lambda y: y @ y)(x), ["b, c"], [floats(4, 3)]),
    "vmapmm": (lambda x, w: polyax.vmap(lambda y: w @ y)(x), ["b, c", "d, c"], [floats(4, 3), floats(2, 3)]),
    "grad": (lambda x: polyax.grad(lambda y: (jnp.sin(y) ** 2).mean())(x), ["b, c"], [floats(4, 3)]),
    "gradmm": (
        lambda x, w: polyax.grad(lambda w: nn.relu(x @ w).sum())(w),
        ["b, c", "c, 2"],
        [floats(4, 3), floats(3, 2)],
    ),
    "jvp": (lambda x: polyax.jvp(jnp.tanh, (x,), (x,))[1], ["b, c"], [floats(4, 3)]),
    "jit": (lambda x: polyax.jit(lambda y: y * 2)(x), ["b, c"], [floats(4, 3)]),
    "remat": (lambda x: polyax.grad(lambda y: polyax.checkpoint(jnp.sin)(y).sum())(x), ["b, c"], [floats(4, 3)]),
    "conv": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"),
        ["b, 3, h, w", "4, 3, 3, 3"],
        [floats(2, 3, 8, 8), floats(4, 3, 3, 3)],
    ),
    "convh": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID"),
        ["b, 3, h, 8", "4, 3, 3, 3"],
        [floats(2, 3, 8, 8), floats(4, 3, 3, 3)],
    ),
    "convs": (
        lambda x, w: lax.conv_general_dilated(x, w, (2, 2), "SAME"),
        ["b, 3, 2*h, 2*w", "4, 3, 3, 3"],
        [floats(2, 3, 8, 8), floats(4, 3, 3, 3)],
    ),
    "maxpool": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        ["b, 8, 8, 3"],
        [floats(2, 8, 8, 3)],
    ),
    "avgpool": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"),
        ["b, 8, 8, 3"],
        [floats(2, 8, 8, 3)],
    ),
    "take_along": (lambda x, i: jnp.take_along_axis(x, i, axis=1), ["b, 3", "b, 1"], [floats(4, 3), integers(4, 1)]),
    "atadd": (
        lambda x, i: x.at[i].add(1.0),
        ["b, 3", "n"],
        [
            floats(4, 3),
            integers(
                5,
            ),
        ],
    ),
    "dynslice": (lambda x: lax.dynamic_slice(x, (1, 0), (1, 3)), ["b, 3"], [floats(4, 3)]),
    "dynslice2": (lambda x: lax.dynamic_slice(x, (0, 0), (x.shape[0], 2)), ["b, 3"], [floats(4, 3)]),
    "dynupdate": (lambda x: lax.dynamic_update_slice(x, jnp.zeros((1, 3)), (1, 0)), ["b, 3"], [floats(4, 3)]),
    "dyninidx": (lambda x: lax.dynamic_index_in_dim(x, 1, 0), ["b, 3"], [floats(4, 3)]),
    "squeeze": (lambda x: jnp.squeeze(x, 1), ["b, 1, c"], [floats(4, 1, 3)]),
    "cholesky": (
        lambda x: jnp.linalg.cholesky(x @ jnp.swapaxes(x, 1, 2) + 4 * jnp.eye(3)),
        ["b, 3, 3"],
        [floats(4, 3, 3)],
    ),
    "solve": (
        lambda x, y: jnp.linalg.solve(x + 4 * jnp.eye(3), y),
        ["b, 3, 3", "b, 3, 2"],
        [floats(4, 3, 3), floats(4, 3, 2)],
    ),
    "qr": (lambda x: jnp.linalg.qr(x)[1], ["b, 3, 3"], [floats(4, 3, 3)]),
    "random": (lambda x: polyax.random.normal(polyax.random.PRNGKey(0), x.shape), ["b, 4"], [floats(3, 4)]),
    "uniform": (lambda x: polyax.random.uniform(polyax.random.PRNGKey(0), x.shape), ["b, 4"], [floats(3, 4)]),
    "split_key": (lambda x: polyax.random.split(polyax.random.PRNGKey(0), x.shape[0]), ["b, 4"], [floats(3, 4)]),
    "dropout": (
        lambda x: jnp.where(polyax.random.bernoulli(polyax.random.PRNGKey(0), 0.5, x.shape), x, 0),
        ["b, 4"],
        [floats(3, 4)],
    ),
    "top_k": (lambda x: lax.top_k(x, 2), ["b, 4"], [floats(3, 4)]),
    "median": (lambda x: jnp.median(x, axis=1), ["b, 5"], [floats(3, 5)]),
    "attention": (
        lambda q, k, v: nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(q.shape[-1])) @ jnp.swapaxes(v, 1, 2),
        ["b, t, 2, 4", "b, t, 2, 4", "b, t, 2, 4"],
        [floats(2, 5, 2, 4), floats(2, 5, 2, 4), floats(2, 5, 2, 4)],
    ),
    "dpa": (
        lambda q, k, v: nn.dot_product_attention(q, k, v, is_causal=True),
        ["b, t, 2, 4", "b, t, 2, 4", "b, t, 2, 4"],
        [floats(2, 5, 2, 4), floats(2, 5, 2, 4), floats(2, 5, 2, 4)],
    ),
    "resize": (
        lambda x: polyax.image.resize(x, (x.shape[0], 4, 4, 3), "bilinear"),
        ["b, 2, 2, 3"],
        [floats(2, 2, 2, 3)],
    ),
    "cross": (lambda x: jnp.cross(x, x[::-1]), ["b, 3"], [floats(4, 3)]),
    "diff": (lambda x: jnp.diff(x, axis=0), ["b + 1, 3"], [floats(4, 3)]),
    "vjpcustom": (lambda x: polyax.vjp(nn.silu, x)[1](x)[0], ["b, 3"], [floats(4, 3)]),
    "segment": (
        lambda x, i: polyax.ops.segment_sum(x, i, num_segments=4),
        ["b, 3", "b"],
        [
            floats(4, 3),
            integers(
                4,
            ),
        ],
    ),
    "histo": (
        lambda x: jnp.bincount(x, length=5),
        ["b"],
        [
            integers(
                4,
            )
        ],
    ),
    "cmp": (lambda x: x if x.shape[0] >= 1 else -x, ["b, c"], [floats(4, 3)]),
    "trace": (lambda x: jnp.trace(x), ["b, b"], [floats(3, 3)]),
    "diag": (lambda x: jnp.diag(x), ["b, b"], [floats(3, 3)]),
    "jacrev": (
        lambda x: polyax.jacrev(jnp.sin)(x),
        ["b"],
        [
            floats(
                3,
            )
        ],
    ),
}
"""A function, symbolic shapes of its arguments, and arguments."""


def _arrays_of(size: Any) -> Any:
    """Functions of a size."""
    return lambda x: size(x.shape[0])


FUNCTIONS |= {
    f"array {n}": (_arrays_of(size), ["b"], [floats(6)])
    for n, size in enumerate(
        [
            lambda b: jnp.arange(b, 0, -1),
            lambda b: jnp.arange(b, 1, -2),
            lambda b: jnp.arange(5 * b + 2, 0, -2),
            lambda b: jnp.arange(b - 3, 0, -2),
            lambda b: jnp.arange(0, 1 - b, 2),
            lambda b: jnp.arange(0, 10, b),
            lambda b: jnp.arange(10, 0, -b),
            lambda b: jnp.arange(b, 1, -b),
            lambda b: jnp.fft.fftfreq(b),
            lambda b: list(
                map(jnp.asarray, (np.arange(3) + b, np.arange(3) * (2 * b), np.float32(2) + b, np.arange(2.0) / b))
            ),
            lambda b: (jnp.int32(b), jnp.float32(2 * b), lax.add(jnp.int32(b), jnp.int32(1))),
        ]
    )
}
STEPS = (None, 1, 2, -1, -2)
_ENDS: list[Any] = [None, 0, 2, -2, lambda b: b, lambda b: 2 * b + 2, lambda b: -b, lambda b: -2 * b - 2]


def _slices(begin: Any, end: Any) -> Any:
    def cut(x: Any) -> list[Any]:
        b = x.shape[1]
        first, last = (e(b) if callable(e) else e for e in (begin, end))
        return [x[first:last:step] for step in (*STEPS, b, -b)]

    return cut


FUNCTIONS |= {
    f"slice {n}:{m}": (_slices(begin, end), ["c, b"], [floats(16, 8)])
    for n, begin in enumerate(_ENDS)
    for m, end in enumerate(_ENDS)
    if n <= m
}
_KERNEL = floats(4, 2, 3)
_LAYOUT = lax.ConvDimensionNumbers((0, 2, 1), (2, 1, 0), (0, 2, 1))
FUNCTIONS |= {
    f"convolution {n}": (
        lambda x, n=n: lax.conv_general_dilated(x, _KERNEL, (2,), n, dimension_numbers=_LAYOUT), ["1, b, 2"],
        [floats(1, 13, 2)],
    )
    for n in ("SAME", "SAME_LOWER", "VALID")
}  # fmt: skip
FUNCTIONS |= {
    f"edges {n}": (edges, ["b + 2, c"], [floats(5, 4)])
    for n, edges in enumerate(
        [
            lambda x: lax.pad(x, np.float32(0), ((x.shape[0], 1, x.shape[1]), (0, 0, 0))),
            lambda x: jnp.pad(x, [[x.shape[0], 0], [x.shape[1], 1]]),
            lambda x: jnp.pad(x, x.shape[0]),
            lambda x: jnp.pad(x, [[x.shape[0], 0], [x.shape[1], 1]], mode="edge"),
            lambda x: jnp.pad(x, ((1, 2), (0, 0)), mode="reflect"),
            lambda x: jnp.pad(x, ((2, 3), (0, 0)), mode="symmetric"),
            lambda x: jnp.pad(x, ((1, 3), (0, 0)), mode="wrap"),
            lambda x: lax.dynamic_slice(x, (-1, 1), (x.shape[0] - 1, 1)),
            lambda x: (x.at[2].set(3.0), x.at[5].get(mode="clip"), x.at[1:].add(1.0), x.at[::-2].mul(2.0)),
            lambda x: (jnp.fft.fftshift(x), jnp.roll(x, x.shape[0] // 2, 0)),
            lambda x: lax.linalg.svd(x, compute_uv=False),
            lambda x: jnp.linspace(0, 1, x.shape[0]),
            lambda x: (jnp.repeat(x, x.shape[0], 0), jnp.repeat(x, x.shape[1]), jnp.repeat(2.0, x.shape[0])),
            lambda x: (jnp.roll(x, 9, 0), jnp.roll(x, -2, 1), jnp.roll(x, 3)),
            lambda x: polyax.ops.segment_max(x, jnp.arange(x.shape[0]) % 2, x.shape[1]),
            lambda x: polyax.ops.segment_sum(x, jnp.arange(x.shape[0]), 2 * x.shape[0]),
        ]
    )
}
