"""First-order operations of random programs: each takes values from a context and gives a value, or None.

Knows nothing of control flow, nor of how programs are run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from fuzz.pool import Context, Value, broadcast, discrete, exact, fits
from fuzz.source import index_text

# --- elementwise ---------------------------------------------------------------------------------------------------


def unary(c: Context) -> Value | None:
    v = c.choose(lambda v: v.kind != "b")
    if v is None:
        return None
    np_, x = c.np, v.x
    if v.kind != "f":
        name = c.pick("negative", "abs", "invert", "sign", "square")
        return Value(getattr(np_, name)(x))
    name = c.pick("sin", "cos", "tanh", "negative", "abs", "square", "sqrt", "log1p", "exp", "arctan")
    if name in ("negative", "abs"):
        return Value(getattr(np_, name)(x), v.exact, v.bound)
    if name in ("sqrt", "log1p"):
        x = x * x + 0.5
    if name == "exp":
        x = np_.tanh(x)
    return Value(getattr(np_, name)(x), False, max(4.0, v.bound**2) if name == "square" else 4.0 + v.bound)


def rounding(c: Context) -> Value | None:
    v = c.choose(lambda v: v.kind == "f" and v.exact)
    if v is None:
        return None
    return Value(getattr(c.np, c.random.choice(("floor", "ceil", "sign", "round", "isnan", "signbit")))(v.x))


def binary(c: Context) -> Value | None:
    v = c.choose()
    w = c.partner(v)
    name = c.pick("add", "subtract", "multiply", "maximum", "minimum")
    if v.kind == w.kind == "b":
        name = c.random.choice(("logical_and", "logical_or", "logical_xor", "maximum"))
    bound = v.bound * w.bound if name == "multiply" else v.bound + w.bound
    kinds = v.kind + w.kind
    if "f" in kinds and "i" in kinds:  # integers have no bound
        return None
    return Value(getattr(c.np, name)(v.x, w.x), "f" not in kinds, 300.0 * bound if "u" in kinds else bound)


def scalar(c: Context) -> Value | None:
    v = c.choose(lambda v: v.kind != "b")
    if v is None:
        return None
    n = c.random.choice((-3, 0, 1, 2, 5)) if v.kind != "u" else c.random.choice((0, 1, 3, 200))
    result = c.random.choice((lambda: v.x + n, lambda: n - v.x, lambda: v.x * n, lambda: n * v.x - n))()
    return Value(result, False, 6 * v.bound + 5)


def integer_division(c: Context) -> Value | None:
    v = c.choose(discrete)
    if v is None:
        return None
    w = c.partner(v, lambda w: w.x.dtype == v.x.dtype)
    x, y = c.np.broadcast_arrays(v.x, w.x)
    return Value(c.random.choice((c.lax.div, c.lax.rem, c.np.floor_divide, c.np.remainder))(x, y))


def shift(c: Context) -> Value | None:
    v = c.choose(discrete)
    if v is None:
        return None
    w = c.partner(v, lambda w: w.x.dtype == v.x.dtype)
    x, y = c.np.broadcast_arrays(v.x, w.x)
    names = ("shift_left", "shift_right_logical", "shift_right_arithmetic", "bitwise_and", "bitwise_xor", "bitwise_or")
    return Value(getattr(c.lax, c.random.choice(names))(x, y))


def division(c: Context) -> Value | None:
    v = c.choose(lambda v: v.kind == "f")
    if v is None:
        return None
    w = c.partner(v, lambda w: w.kind == "f")
    return Value(v.x / (1 + w.x * w.x), False, v.bound)


def compare(c: Context) -> Value | None:
    v = c.choose(exact)
    if v is None:
        return None
    w = c.partner(v, lambda w: exact(w) and w.x.dtype == v.x.dtype)
    names = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
    return Value(getattr(c.np, c.random.choice(names))(v.x, w.x))


def cast(c: Context) -> Value | None:
    v = c.choose(exact)
    if v is None:
        return None
    dtype = c.random.choice(("float32", "int32", "uint8", "bool", "int8"))
    x = v.x % 17 if discrete(v) and dtype == "float32" else v.x
    if v.kind == "f" and dtype == "uint8":
        x = c.np.abs(x)
    return Value(x.astype(dtype), bound=17.0)


def where(c: Context) -> Value | None:
    p = c.choose(lambda v: v.kind == "b")
    if p is None:
        return None
    v = c.partner(p)
    shape = np.broadcast_shapes(p.x.shape, v.x.shape)
    w = c.choose(lambda w: w.x.dtype == v.x.dtype and broadcast(shape, w.x.shape)) or v
    return Value(c.np.where(p.x, v.x, w.x), v.exact and w.exact, v.bound + w.bound)


def clip(c: Context) -> Value | None:
    v = c.choose(lambda v: v.kind in ("i" if c.smooth else "fi"))
    return v and Value(c.np.clip(v.x, -1, 2), v.exact, v.bound)


# --- reductions ----------------------------------------------------------------------------------------------------


def axis_of(c: Context, v: Value) -> Any:
    """An axis, several, or None."""
    axes = range(v.x.ndim)
    kind = c.random.randrange(3)
    if not v.x.ndim or kind == 0:
        return None
    return c.random.choice(axes) if kind == 1 else tuple(n for n in axes if c.chance(0.6))


def reduction(c: Context) -> Value | None:
    v = c.choose()
    axis, keepdims = axis_of(c, v), c.chance(0.4)
    n = max(1, v.x.size)
    name = c.random.choice(
        ("sum", "mean" if v.x.size else "sum") if v.kind == "f" else ("sum", "prod", "any", "all", "count_nonzero")
    )
    if v.x.size and not c.smooth and c.chance(0.4):
        return Value(getattr(c.np, c.random.choice(("max", "min")))(v.x, axis, keepdims=keepdims), v.exact, v.bound)
    return Value(getattr(c.np, name)(v.x, axis, keepdims=keepdims), False, v.bound * n)


def position(c: Context) -> Value | None:
    v = c.choose(lambda v: exact(v) and v.x.size)
    if v is None:
        return None
    axis = c.random.randrange(v.x.ndim) if v.x.ndim and c.chance(0.7) else None
    return Value(getattr(c.np, c.random.choice(("argmax", "argmin")))(v.x, axis))


def cumulative(c: Context) -> Value | None:
    v = c.choose(lambda v: v.x.ndim)
    if v is None or v.kind == "b":
        return None
    axis = c.random.randrange(v.x.ndim)
    name = c.pick("cumsum", "cummax", "cummin") if v.kind == "f" else c.pick("cumsum", "cumprod", "cummax")
    bound = v.bound * max(1, v.x.shape[axis])
    return Value(getattr(c.lax, name)(v.x, axis, reverse=c.chance(0.4)), False, bound)


def sorting(c: Context) -> Value | None:
    v = c.choose(lambda v: exact(v) and v.x.ndim)
    if v is None:
        return None
    axis = c.random.randrange(v.x.ndim)
    if c.chance(0.5):
        return Value(c.np.argsort(v.x, axis, stable=True))
    return Value(c.np.sort(v.x, axis), v.exact, v.bound)


# --- shapes --------------------------------------------------------------------------------------------------------


def same(v: Value, x: Any) -> Value:
    return Value(x, v.exact, v.bound)


def reshape(c: Context) -> Value | None:
    v = c.choose()
    shape = [n for n in v.x.shape if n != 1]
    if len(shape) > 1 and c.chance(0.5):
        k = c.random.randrange(len(shape) - 1)
        shape[k : k + 2] = [shape[k] * shape[k + 1]]
    c.random.shuffle(shape)
    if c.chance(0.4):
        shape.insert(c.random.randint(0, len(shape)), 1)
    return same(v, v.x.reshape(shape))


def transpose(c: Context) -> Value | None:
    v = c.choose(lambda v: v.x.ndim > 1)
    return v and same(v, v.x.transpose(c.random.sample(range(v.x.ndim), v.x.ndim)))


def broadcast_to(c: Context) -> Value | None:
    v = c.choose(lambda v: v.x.ndim < 4)
    if v is None:
        return None
    shape = [c.random.choice((2, 3)) if n == 1 and c.chance(0.7) else n for n in v.x.shape]
    return same(v, c.np.broadcast_to(v.x, [*c.random.choice(((), (1,), (3,), (0,))), *shape]))


def reordering(c: Context) -> Value | None:
    v = c.choose(lambda v: v.x.ndim)
    if v is None:
        return None
    np_, axis, n = c.np, c.random.randrange(v.x.ndim), c.random.randint(-3, 3)
    moves = (
        lambda: np_.flip(v.x, axis),
        lambda: np_.roll(v.x, n, axis),
        lambda: np_.repeat(v.x, abs(n), axis),
        lambda: np_.tile(v.x, (abs(n),)),
        lambda: np_.expand_dims(v.x, axis),
        lambda: np_.tril(np_.atleast_2d(v.x), n),
    )
    return same(v, c.random.choice(moves)())


def joining(c: Context) -> Value | None:
    v = c.choose(lambda v: v.x.ndim)
    if v is None:
        return None
    axis = c.random.randrange(v.x.ndim)
    rest = lambda u: (u.x.shape[:axis], u.x.shape[axis + 1 :])
    w = c.choose(lambda w: w.x.ndim == v.x.ndim and w.x.dtype == v.x.dtype and rest(v) == rest(w)) or v
    if v.x.shape == w.x.shape and c.chance(0.4):
        return Value(c.np.stack([v.x, w.x, v.x], axis), v.exact and w.exact, max(v.bound, w.bound))
    return Value(c.np.concatenate([v.x, w.x], axis), v.exact and w.exact, max(v.bound, w.bound))


def padding(c: Context) -> Value | None:
    v = c.choose(lambda v: v.x.ndim)
    if v is None:
        return None
    config = [(c.random.randint(-1, 2), c.random.randint(-1, 2), c.random.randint(0, 2)) for _ in v.x.shape]
    good = [n > 0 and n + (n - 1) * i + lo + hi >= 0 for n, (lo, hi, i) in zip(v.x.shape, config)]
    config = [sizes if ok else (1, 0, 0) for sizes, ok in zip(config, good)]
    return same(v, c.lax.pad(v.x, np.ones((), v.x.dtype)[()], config))


# --- indexing ------------------------------------------------------------------------------------------------------


def basic_index(c: Context) -> Value | None:
    v = c.choose(lambda v: v.x.ndim)
    if v is None:
        return None
    return same(v, v.x[static_index(c, v.x.shape)])


def static_index(c: Context, shape: Sequence[int]) -> tuple[Any, ...]:
    index: list[Any] = []
    for n in shape:
        kind = c.random.randrange(5)
        if kind == 0 and n:
            index.append(c.random.randrange(-n, n))
        elif kind == 1:
            index.extend((None, slice(None)))
        else:
            ends = [c.random.choice((None, *range(-n - 1, n + 2))) for _ in range(2)]
            index.append(slice(*ends, c.random.choice((None, 1, 2, -1, -2))))
    if c.chance(0.2):
        index[c.random.randrange(len(index)) :] = [...]
    return tuple(index)


def indices(c: Context, n: int) -> Any:
    """Positions on an axis of size ``n``: traced where the pool has integers, some of them out of bounds."""
    found = c.choose(lambda v: discrete(v) and v.x.ndim < 3 and v.x.size < 50)
    if found is None or c.chance(0.3):
        return np.array([0, 1, -1, n - 1, n + 2][: c.random.randint(1, 5)], np.int32)
    return found.x if c.chance(0.5) else found.x % max(1, n)


def gathering(c: Context) -> Value | None:
    v = c.choose(lambda v: v.x.ndim and v.x.size)
    if v is None:
        return None
    axis = c.random.randrange(v.x.ndim)
    i = indices(c, v.x.shape[axis])
    if v.kind == "f" and c.chance(0.5):
        return same(v, v.x.at[(slice(None),) * axis + (i,)].get(mode="fill", fill_value=0))
    if c.chance(0.5):
        inside = i % v.x.shape[axis] if v.kind == "f" else i  # past the end JAX's derivatives differ from each other
        return same(v, v.x[(slice(None),) * axis + (inside,)])
    return same(v, c.np.take(v.x, i, axis, mode="clip"))


def updating(c: Context) -> Value | None:
    v = c.choose(lambda v: v.x.ndim and v.x.size and v.kind != "b")
    if v is None:
        return None
    if c.chance(0.4):
        index = static_index(c, v.x.shape)
    else:
        axis = c.random.randrange(v.x.ndim)
        index = (slice(None),) * axis + (indices(c, v.x.shape[axis]),)
    at = v.x.at[index]
    shape = c.recorder.type_of(f"{v.x.name}[{index_text(index)}]").shape
    w = c.choose(lambda w: w.x.dtype == v.x.dtype and fits(w.x.shape, shape))
    update = w.x if w else 1
    name = c.pick("add", "max", "min", "multiply") if v.kind != "f" else c.pick("add", "max")
    bound = v.bound + (w.bound if w else 1) * 50
    if isinstance(index[-1], slice | None | int) and c.chance(0.5):
        name = "set"
    return Value(getattr(at, name)(update), False, bound)


def dynamic(c: Context) -> Value | None:
    v = c.choose(lambda v: v.x.ndim)
    if v is None:
        return None
    first = c.choose(lambda v: v.kind == "i" and v.x.ndim == 0)
    if first is None:
        starts = [c.random.randint(-1, 3) for _ in v.x.shape]
    else:  # all are of one type
        starts = [c.choose(lambda v: v.x.dtype == first.x.dtype and v.x.ndim == 0).x for _ in v.x.shape]
    sizes = [c.random.randint(0 if n == 0 else 1, n) for n in v.x.shape]
    part = c.lax.dynamic_slice(v.x, starts, sizes)
    if c.chance(0.5):
        return same(v, part)
    return same(v, c.lax.dynamic_update_slice(v.x, c.np.flip(part), [*reversed(starts)]))


# --- products --------------------------------------------------------------------------------------------------------


def product(c: Context) -> Value | None:
    v = c.choose(lambda v: v.x.ndim and v.kind == "f")
    if v is None:
        return None
    w = c.choose(lambda w: w.x.dtype == v.x.dtype and w.x.ndim and v.x.shape[-1] in w.x.shape) or v
    axis = list(w.x.shape).index(v.x.shape[-1]) if w is not v else w.x.ndim - 1
    bound = v.bound * w.bound * max(1, v.x.shape[-1])
    if v.x.ndim + w.x.ndim > 6:
        return None
    return Value(c.np.tensordot(v.x, w.x, ((v.x.ndim - 1,), (axis,))), False, bound)


def matrix_product(c: Context) -> Value | None:
    v = c.choose(lambda v: v.x.ndim > 1 and v.kind == "f")
    if v is None:
        return None
    return Value(v.x @ c.np.swapaxes(v.x, -1, -2), False, v.bound**2 * max(1, v.x.shape[-1]))


OPERATIONS = (
    unary, unary, binary, binary, binary, rounding, scalar, integer_division, shift, division, compare, cast, where,
    clip, reduction, reduction, position, cumulative, sorting, reshape, transpose, broadcast_to, reordering, joining,
    padding, basic_index, basic_index, gathering, updating, dynamic, product, matrix_product,
)  # fmt: skip
