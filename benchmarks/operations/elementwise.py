"""Functions of single elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from operations.operation import Inputs, Operation, above_one, cast, positive, share, unit, vector, vectors, whole

ANYWHERE = (
    "abs negative square sin cos tan exp exp2 expm1 sinh cosh tanh arctan arcsinh sign floor ceil rint trunc isnan "
    "isfinite cbrt sinc deg2rad"
)
POSITIVE = "sqrt log log2 log10 log1p reciprocal"
INSIDE = "arcsin arccos arctanh"
PAIRS = "add subtract multiply divide maximum minimum arctan2 hypot logaddexp floor_divide remainder greater copysign"
WHOLE = "bitwise_and left_shift floor_divide remainder multiply gcd"
ACTIVATIONS = "relu gelu silu sigmoid softplus elu selu leaky_relu mish hard_tanh log_sigmoid swish celu"
SPECIAL = {
    "erf": vector, "erfc": vector, "erfinv": unit, "gammaln": positive, "digamma": positive, "ndtr": vector,
    "log_ndtr": vector, "ndtri": share, "expit": vector, "logit": share,
    "i0e": vector, "i1e": vector, "xlogy": lambda n: (*positive(n), *positive(n)), "entr": positive,
}  # fmt: skip
SMOOTH = "abs negative square sin cos tan exp exp2 expm1 sinh cosh tanh arctan arcsinh cbrt sinc deg2rad"
SMOOTH_PAIRS = "add subtract multiply divide maximum minimum arctan2 hypot logaddexp"
NARROW = "sin exp tanh multiply"
CONVERSIONS = {
    "float16": "float32 int32", "bfloat16": "float32 int32", "float32": "bfloat16 float16 int8 uint8 int32 bool",
    "int8": "float32 int32", "int32": "float32 int8 bool", "bool": "float32 int32",
}  # fmt: skip


def operations() -> Iterator[Operation]:
    for names, inputs, smooth in ((ANYWHERE, vector, SMOOTH), (POSITIVE, positive, None), (INSIDE, unit, None)):
        for name in names.split():
            yield _function(name, inputs, gradient=smooth is None or name in smooth.split())
    yield _function("arccosh", above_one)
    for name in PAIRS.split():
        yield _function(name, vectors, gradient=name in SMOOTH_PAIRS.split())
    yield _function("power", lambda n: (*positive(n), *vector(n)))
    for name in WHOLE.split():
        yield _function(name, lambda n: (*whole(n), whole(n)[0] % 7 + 1), gradient=False, label=f"int32 {name}")
    for dtype in ("bfloat16", "float16", "float64", "complex64"):
        for name in NARROW.split():
            inputs = cast(vectors if name == "multiply" else vector, dtype)
            yield _function(name, inputs, gradient=False, label=f"{dtype} {name}")
    for dtype, others in CONVERSIONS.items():
        for other in others.split():
            call = lambda m, x, other=other: x.astype(other)
            yield Operation(f"{dtype} to {other}", call, cast(vector, dtype), gradient=False)
    for name in ACTIVATIONS.split():
        yield Operation(f"nn.{name}", _of("nn", name), vector)
    for name, inputs in SPECIAL.items():
        yield Operation(f"special.{name}", _special(name), inputs)
    yield Operation("where", lambda m, x, y: m.numpy.where(x > 0, x, y), vectors)
    yield Operation("clip", lambda m, x: m.numpy.clip(x, -1, 1), vector)
    yield Operation("polynomial", lambda m, x: ((x + 1) * x + 1) * x + 1, vector)
    yield Operation("black_scholes", _black_scholes, lambda n: (*positive(n), *positive(n)))


def _function(name: str, inputs: Inputs, *, gradient: bool = True, label: str = "") -> Operation:
    return Operation(label or name, _of("numpy", name), inputs, gradient=gradient, torch=_torch(name))


def _of(module: str, name: str) -> Any:
    return lambda m, *args: getattr(getattr(m, module), name)(*args)


def _torch(name: str) -> Any:
    return lambda t, *args: getattr(t, name)(*args)


def _special(name: str) -> Any:
    return lambda m, *args: getattr(m.scipy.special, name)(*args)


def _black_scholes(m: Any, price: Any, strike: Any) -> Any:
    """A call option of a year."""
    ratio = m.numpy.log(price / strike) + 0.07
    normal = lambda x: 0.5 * (1 + m.scipy.special.erf(x * 0.70710678))
    return price * normal(ratio / 0.3) - strike * m.numpy.exp(-0.05) * normal(ratio / 0.3 - 0.3)
