"""One row for each elementwise function, on a domain where its derivative is finite."""

from __future__ import annotations

import numpy as np

from polyax_conformance.specs.spec import TableRow, booleans, integers, normal, uniform

X = normal(2, 3)
POSITIVE = uniform(0.3, 3, 2, 3)
UNIT = uniform(-0.9, 0.9, 2, 3)

UNARY = {
    "negative": X,
    "positive": X,
    "abs": X,
    "square": X,
    "sqrt": POSITIVE,
    "cbrt": POSITIVE,
    "reciprocal": POSITIVE,
    "exp": X,
    "exp2": X,
    "expm1": X,
    "log": POSITIVE,
    "log2": POSITIVE,
    "log10": POSITIVE,
    "log1p": POSITIVE,
    "sin": X,
    "cos": X,
    "tan": UNIT,
    "arcsin": UNIT,
    "arccos": UNIT,
    "arctan": X,
    "sinh": X,
    "cosh": X,
    "tanh": X,
    "arcsinh": X,
    "arccosh": uniform(1.2, 4, 2, 3),
    "arctanh": UNIT,
    "deg2rad": X,
    "rad2deg": UNIT,
    "sinc": X,
}

STEPS = {"sign": X, "floor": X, "ceil": X, "trunc": X, "rint": X}
PREDICATES = {"isnan": X, "isfinite": X, "isinf": X, "signbit": X, "logical_not": booleans(4)}

BINARY = {
    "add": (X, X),
    "subtract": (X, X),
    "multiply": (X, X),
    "divide": (X, POSITIVE),
    "power": (POSITIVE, X),
    "maximum": (X, X),
    "minimum": (X, X),
    "arctan2": (X, POSITIVE),
    "hypot": (POSITIVE, POSITIVE),
    "logaddexp": (X, X),
    "fmod": (uniform(3.1, 3.9, 2, 3), uniform(0.8, 1.0, 2, 3)),
    "remainder": (uniform(-3.9, -3.1, 2, 3), uniform(0.8, 1.0, 2, 3)),
}

INTEGER = {
    "bitwise_and": (integers(-9, 9, 5), integers(-9, 9, 5)),
    "bitwise_or": (integers(-9, 9, 5), integers(-9, 9, 5)),
    "bitwise_xor": (integers(-9, 9, 5), integers(-9, 9, 5)),
    "left_shift": (integers(0, 9, 5), integers(0, 9, 5)),
    "right_shift": (integers(-99, 99, 5), integers(0, 5, 5)),
    "floor_divide": (integers(-9, 9, 5), integers(1, 5, 5)),
    "remainder": (integers(-9, 9, 5), integers(1, 5, 5)),
    "multiply": (integers(-9, 9, 5), integers(-9, 9, 5)),
    "equal": (integers(0, 3, 5), integers(0, 3, 5)),
    "less": (integers(0, 3, 5), integers(0, 3, 5)),
    "greater_equal": (integers(0, 3, 5), integers(0, 3, 5)),
    "logical_and": (booleans(5), booleans(5)),
    "logical_xor": (booleans(5), booleans(5)),
}


def call(name):
    return lambda xp, *args: getattr(xp, name)(*args)


SPECS = [
    *(
        TableRow(name, call(name), (draw,), sample=name in ("sin", "exp", "tanh", "sqrt"))
        for name, draw in UNARY.items()
    ),
    *(TableRow(name, call(name), (draw,), sample=name == "floor") for name, draw in STEPS.items()),
    *(TableRow(name, call(name), (draw,), differentiable=False) for name, draw in PREDICATES.items()),
    *(TableRow(name, call(name), draws, sample=name in ("add", "power")) for name, draws in BINARY.items()),
    *(TableRow(f"int {name}", call(name), draws, differentiable=False) for name, draws in INTEGER.items()),
    TableRow("power 3", lambda xp, x: x**3, (X,)),
    TableRow("power 0.5", lambda xp, x: x**0.5, (POSITIVE,)),
    TableRow("scalar operators", lambda xp, x: 2 - x / 3 + (-x) * 0.5, (X,), sample=True),
    TableRow("broadcast", lambda xp, x, y: x * y + x, (normal(2, 1), normal(3)), sample=True),
    TableRow("clip", lambda xp, x: xp.clip(x, -0.5, 0.5), (X,)),
    TableRow("where", lambda xp, c, x, y: xp.where(c, x, y), (booleans(2, 3), X, X), sample=True),
    TableRow("where scalar", lambda xp, x: xp.where(x > 0, x, 0.1 * x), (X,)),
    TableRow("astype", lambda xp, x: x.astype(np.float32) * 2, (integers(0, 9, 4),), differentiable=False),
    TableRow("polynomial", lambda xp, x: ((0.3 * x + 1) * x - 2) * x + 5, (X,)),
    TableRow("repeated use", lambda xp, x: xp.sin(x) * xp.sin(x) + xp.cos(x) * x, (X,)),
]
