"""Shapes, reductions, cumulative operations, products and convolutions."""

from __future__ import annotations

import numpy as np

from polyax import lax
from polyax_conformance.specs.case import Case, case
from polyax_conformance.specs.primitives.data import CUBE, RNG, SIGNED, V, X, Y

IMAGES = RNG.uniform(-1, 1, (2, 4, 5, 6))
WINDOWS = RNG.uniform(-1, 1, (6, 4, 2, 3))
CUMULATIVE = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")

SHAPES: dict[str, Case] = {
    "broadcast_in_dim": case(lambda x: lax.broadcast_in_dim(x, (3, 2, 4), (0, 2)), X),
    "broadcast_in_dim, stretching": case(lambda x: lax.broadcast_in_dim(x, (3, 2, 4), (0, 2)), X[:, :1]),
    "reshape": case(lambda x: lax.reshape(x, (2, 6)), X),
    "reshape with dimensions": case(lambda x: lax.reshape(x, (2, 6), (1, 0)), X),
    "squeeze": case(lambda x: lax.squeeze(x, (1,)), X[:, None]),
    "expand_dims": case(lambda x: lax.expand_dims(x, (0, 2)), X),
    "transpose": case(lambda x: lax.transpose(x, (2, 0, 1)), CUBE),
    "rev": case(lambda x: lax.rev(x, (0, 2)), CUBE),
    "slice": case(lambda x: lax.slice(x, (1, 0), (3, 3)), X),
    "strided slice": case(lambda x: lax.slice(x, (0, 1), (3, 4), (2, 2)), X),
    "pad": case(lambda x, v: lax.pad(x, v, ((1, 2, 0), (0, 1, 2))), X, np.float64(0.3)),
    "pad, cutting": case(lambda x, v: lax.pad(x, v, ((-1, 1, 0), (2, -2, 1))), X, np.float64(0.3)),
    "concatenate": case(lambda x, y: lax.concatenate([x, y, x], 1), X, Y),
    "split": case(lambda x: lax.concatenate(lax.split(x, (1, 3), 1)[::-1], 1), X),
    "tile": case(lambda x: lax.tile(x, (2, 3)), X),
}

REDUCTIONS: dict[str, Case] = {
    "reduce_sum": case(lambda x: lax.reduce_sum(x, (0, 2)), CUBE),
    "reduce_prod": case(lambda x: lax.reduce_prod(x, (1,)), CUBE),
    "reduce_max": case(lambda x: lax.reduce_max(x, (1, 2)), CUBE),
    "reduce_min": case(lambda x: lax.reduce_min(x, (0,)), CUBE),
    **{
        f"{name} reverse={reverse}": case(lambda x, n=name, r=reverse: getattr(lax, n)(x, 1, r), SIGNED)
        for name in CUMULATIVE
        for reverse in (False, True)
    },
}

PRODUCTS: dict[str, Case] = {
    "dot_general, vectors": case(lambda x, y: lax.dot_general(x, y, (((0,), (0,)), ((), ()))), V, V[::-1] + 0.1),
    "dot_general, matrices": case(lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((), ()))), X, Y),
    "dot_general, batched": case(
        lambda x, y: lax.dot_general(x, y, (((2, 0), (3, 1)), ((1,), (0,)))),
        CUBE,
        RNG.uniform(-1, 1, (3, 2, 5, 4)),
    ),
    "conv": case(lambda x, w: lax.conv(x, w, (1, 1), "SAME"), IMAGES, WINDOWS),
    "conv, strided": case(
        lambda x, w: lax.conv_general_dilated(x, w, (2, 1), [(1, 2), (0, -1)], (1, 2), (2, 1)), IMAGES, WINDOWS
    ),
    "conv, channels last": case(
        lambda x, w: lax.conv_general_dilated(x, w, (1, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        IMAGES.transpose(0, 2, 3, 1),
        WINDOWS.transpose(2, 3, 1, 0),
    ),
    "conv, feature groups": case(
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID", feature_group_count=2), IMAGES, WINDOWS[:, :2]
    ),
    "conv, batch groups": case(
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID", batch_group_count=2), IMAGES, WINDOWS
    ),
    "conv_transpose": case(
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), IMAGES[..., :3], RNG.uniform(-1, 1, (2, 2, 3, 2))
    ),
}

CASES = {**SHAPES, **REDUCTIONS, **PRODUCTS}
