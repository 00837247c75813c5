"""Reductions and cumulative operations, over all axes, one axis, several, with dimensions kept."""

from __future__ import annotations

import numpy as np

from polyax_conformance.specs.spec import TableRow, booleans, integers, normal, uniform

X = normal(3, 4)
DEEP = normal(2, 3, 2)

REDUCE = ("sum", "mean", "max", "min", "prod", "var", "std")


SPECS = [
    *(TableRow(name, lambda xp, x, n=name: getattr(xp, n)(x), (X,), sample=name == "sum") for name in REDUCE),
    *(TableRow(f"{name} axis 0", lambda xp, x, n=name: getattr(xp, n)(x, axis=0), (X,)) for name in REDUCE),
    *(
        TableRow(f"{name} axis -1 kept", lambda xp, x, n=name: getattr(xp, n)(x, axis=-1, keepdims=True), (X,))
        for name in REDUCE
    ),
    TableRow("sum two axes", lambda xp, x: xp.sum(x, axis=(0, 2)), (DEEP,), sample=True),
    TableRow("max two axes", lambda xp, x: xp.max(x, axis=(1, 2)), (DEEP,), sample=True),
    TableRow("sum int", lambda xp, x: xp.sum(x, dtype=np.int32), (integers(-9, 9, 7),), differentiable=False),
    TableRow("any", lambda xp, x: xp.any(x, axis=0), (booleans(3, 4),), differentiable=False),
    TableRow("all", lambda xp, x: xp.all(x, axis=1), (booleans(3, 4),), differentiable=False),
    TableRow("argmax", lambda xp, x: xp.argmax(x, axis=1), (X,), differentiable=False, sample=True),
    TableRow("argmin", lambda xp, x: xp.argmin(x), (X,), differentiable=False),
    TableRow("cumsum", lambda xp, x: xp.cumsum(x, axis=1), (X,)),
    TableRow("cumprod", lambda xp, x: xp.cumprod(x, axis=0), (uniform(0.5, 1.5, 3, 4),)),
    TableRow("normalise", lambda xp, x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True), (X,)),
    TableRow("sum of squares of differences", lambda xp, x, y: xp.sum((x - y) ** 2), (X, X), sample=True),
    TableRow("softmax by hand", lambda xp, x: xp.exp(x) / xp.sum(xp.exp(x), axis=1, keepdims=True), (X,)),
]
