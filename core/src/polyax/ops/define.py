"""Makers of elementwise and linear primitives: one line of a table becomes a primitive with all four rules.

Knows shapes, dtypes, linearity and batching in general, and no primitive in particular.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray
from polyax.ir.dtypes import BOOL, COMPLEX, FLOATS, INTS, UINTS, DType
from polyax.ir.primitive import Primitive
from polyax.meshes import factors
from polyax.ops.basis import expand_dims, match_axis, move_axis, reshape, stretched, unbroadcast
from polyax.ops.zeros import add_tangents, instantiate
from polyax.trace.symbolic import Zero, is_undef

Derivative = Callable[..., Any]
"""``(tangent, result, *operands, **params) -> tangent of the result``."""


class Accepts:
    """A set of dtypes and what error texts call it. ``opaque``: whether extended ones belong to it."""

    def __init__(self, *, opaque: bool = False, **kinds: frozenset[Any]) -> None:
        self.text = ", ".join(kinds)
        self.dtypes = frozenset().union(*kinds.values())
        self.opaque = opaque

    def __contains__(self, dtype: DType) -> bool:
        return dtype in self.dtypes or (self.opaque and dtypes.is_extended(dtype))


_FLOATS = FLOATS | frozenset(dtypes.NARROW_FLOATS.values())
_INTEGERS = INTS | UINTS | frozenset(dtypes.NARROW_INTS.values())
FLOAT = Accepts(floating=_FLOATS)
INEXACT = Accepts(floating=_FLOATS, complexfloating=COMPLEX)
COMPLEXES = Accepts(complexfloating=COMPLEX)
INTEGER = Accepts(integer=_INTEGERS)
INT_OR_BOOL = Accepts(integer=_INTEGERS, bool=BOOL)
NUMBER = Accepts(integer=_INTEGERS, floating=_FLOATS, complexfloating=COMPLEX)
MAGNITUDES = Accepts(floating=_FLOATS, complexfloating=COMPLEX, signedinteger=INTS)
REAL = Accepts(integer=_INTEGERS, floating=_FLOATS)
ORDERED = Accepts(integer=_INTEGERS, floating=_FLOATS, bool=BOOL)
ANY = Accepts(integer=_INTEGERS, floating=_FLOATS, complexfloating=COMPLEX, bool=BOOL)
ANY_OR_KEY = Accepts(opaque=True, integer=_INTEGERS, floating=_FLOATS, complexfloating=COMPLEX, bool=BOOL)


def elementwise(
    name: str | Primitive,
    accepts: Accepts | Sequence[Accepts],
    jvp: Derivative | Sequence[Derivative | None] | None = None,
    *,
    linear_in: tuple[int, ...] = (),
    transposes: Sequence[Callable[..., Any]] = (),
    out: Callable[..., DType] | None = None,
    mixed: bool = False,
) -> Primitive:
    """An elementwise primitive of one or several operands.

    ``accepts`` and ``jvp`` are per operand. No derivative at all means that the result is flat or discrete. In the
    operands of ``linear_in`` the primitive is linear: an elementwise linear map is diagonal, so its derivative formula
    is its transpose too; where the dtype changes, ``transposes`` are ``(ct, **params) -> ct``. ``out`` maps operand
    dtypes (and params) to that of the result; ``mixed`` operands may differ in dtype.
    """
    p = name if isinstance(name, Primitive) else Primitive(name)
    kinds = (accepts,) if isinstance(accepts, Accepts) else tuple(accepts)
    jvps = (jvp,) * (jvp is not None) if callable(jvp) or jvp is None else tuple(jvp)
    p.elementwise = True
    p.linear_in = linear_in or tuple(range(len(transposes)))
    p.abstract_eval = _elementwise_abstract(p.name, kinds, out, mixed)
    p.jvp = _elementwise_jvp(p, jvps) if jvps else flat_jvp(p)
    if p.linear_in:
        formulas = tuple(map(_of_cotangent, transposes)) or jvps
        p.transpose = _elementwise_transpose(p.name, formulas, p.linear_in)
    else:
        p.never("transpose", f"{p.name} is not linear")
    p.batch, p.factors = elementwise_batch(p), factors.elementwise
    return p


# --- types ----------------------------------------------------------------------------------------------------------


def check_dtype(name: str, aval: ShapedArray, accepts: Accepts, position: int | None = None) -> None:
    """Raises JAX's ``TypeError`` unless the dtype of ``aval`` is accepted."""
    if aval.dtype in accepts:
        return
    where = "" if position is None else f" at position {position}"
    if aval.dtype == dtypes.float0:
        raise TypeError(
            f"Called {name} with a float0{where}. float0s do not support any operations by design: they are the "
            "tangents of integers and booleans. You might have taken a gradient with respect to an integer argument."
        )
    raise TypeError(
        f"{name} does not accept dtype {dtypes.full_name(aval.dtype)}{where}. "
        f"Accepted dtypes{where} are subtypes of {accepts.text}."
    )


_PROMOTING = {
    "eq": "equal", "ne": "not_equal", "ge": "greater_equal", "gt": "greater", "le": "less_equal", "lt": "less",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "max": "maximum", "min": "minimum", "pow": "power",
    "rem": "remainder", "sub": "subtract", "mul": "multiply", "div": "divide", "select": "where",
} | {name: name for name in ("add", "atan2", "concatenate", "nextafter")}  # fmt: skip


def check_same_dtype(name: str, avals: Sequence[ShapedArray]) -> None:
    """Raises JAX's ``TypeError``, with its tip, unless all dtypes are equal."""
    if all(a.dtype == avals[0].dtype for a in avals):
        return
    tip = ""
    if name in _PROMOTING:
        tip = f" (Tip: jnp.{_PROMOTING[name]} is a similar function that does automatic type promotion on inputs)."
    names = ", ".join(dtypes.full_name(a.dtype) for a in avals)
    raise TypeError(f"lax.{name} requires arguments to have the same dtypes, got {names}.{tip}")


def broadcast_shape(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape of operands of equal rank whose dimensions are equal or 1; scalars go with everything."""
    shapes = [s for s in shapes if s]
    if not shapes:
        return ()
    first = shapes[0]
    if all(s == first for s in shapes):
        return first
    if len({len(s) for s in shapes}) > 1:
        ranks = {len(s) for s in shapes}
        raise TypeError(f"{name}: arrays must have the same number of dimensions, got {ranks}")
    sizes = [_common_size(ns) for ns in zip(*shapes, strict=True)]
    if None in sizes:
        raise TypeError(f"{name} got incompatible shapes for broadcasting: {', '.join(map(str, shapes))}.")
    return tuple(sizes)  # type: ignore[arg-type]


def _common_size(sizes: Sequence[int]) -> int | None:
    larger = {n for n in sizes if n != 1}
    return None if len(larger) > 1 else (larger or {1}).pop()


def _elementwise_abstract(
    name: str, kinds: tuple[Accepts, ...], out: Callable[..., DType] | None, mixed: bool
) -> Callable[..., list[ShapedArray]]:
    if len(kinds) == 1:

        @lru_cache(2048)  # in a program the same types recur
        def one(x: ShapedArray, **params: Any) -> list[ShapedArray]:
            check_dtype(name, x, kinds[0])
            return [ShapedArray(x.shape, out(x.dtype, **params) if out else x.dtype, x.weak_type)]

        return one

    @lru_cache(2048)
    def several(*avals: ShapedArray, **params: Any) -> list[ShapedArray]:
        shape = broadcast_shape(name, [a.shape for a in avals])
        for i, (aval, accepts) in enumerate(zip(avals, kinds, strict=True)):
            check_dtype(name, aval, accepts, i)
        if not mixed:
            check_same_dtype(name, avals)
        dtype = out(*(a.dtype for a in avals), **params) if out else avals[0].dtype
        return [ShapedArray(shape, dtype, all(a.weak_type for a in avals))]

    return several


# --- derivatives ----------------------------------------------------------------------------------------------------


def _elementwise_jvp(p: Primitive, jvps: tuple[Derivative | None, ...]) -> Callable[..., Any]:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        y = p.bind1(*primals, **params)
        total: Any = Zero.of(y)
        for formula, t in zip(jvps, tangents, strict=True):
            if formula is not None and type(t) is not Zero:
                term = stretched(formula(t, y, *primals, **params), y.shape)
                total = add_tangents(total, term)
        return [y], [total]

    return jvp


def flat_jvp(p: Primitive) -> Callable[..., Any]:
    """The rule of a primitive whose results are flat or discrete."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        ys = p.bind_all(*primals, **params)
        return ys, [Zero.of(y) for y in ys]

    return jvp


def linear_jvp(p: Primitive, operands: slice = slice(None)) -> Callable[..., Any]:
    """The rule of a primitive that is linear in these operands together: it is applied to their tangents."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        ys = p.bind_all(*primals, **params)
        if all(type(t) is Zero for t in tangents[operands]):
            return ys, [Zero.of(y) for y in ys]
        moved = list(primals)
        moved[operands] = map(instantiate, tangents[operands])
        return ys, p.bind_all(*moved, **params)

    return jvp


def bilinear_jvp(p: Primitive) -> Callable[..., Any]:
    """The product rule."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        (x, y), (tx, ty) = primals, tangents
        z = p.bind1(x, y, **params)
        by_x = tx if type(tx) is Zero else p.bind1(tx, y, **params)
        by_y = ty if type(ty) is Zero else p.bind1(x, ty, **params)
        total = add_tangents(by_x, by_y)
        return [z], [Zero.of(z) if type(total) is Zero else total]

    return jvp


def _of_cotangent(transpose: Callable[..., Any]) -> Derivative:
    return lambda ct, z, *operands, **params: transpose(ct, **params)


def _elementwise_transpose(
    name: str, formulas: tuple[Derivative | None, ...], linear_in: tuple[int, ...]
) -> Callable[..., list[Any]]:
    def transpose(cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
        (ct,) = cts

        def of(i: int, x: Any) -> Any:
            if not is_undef(x):
                return None
            if i not in linear_in:
                raise NotImplementedError(f"{name} is not linear in its operand {i}")
            if type(ct) is Zero:
                return Zero(x.aval)
            formula = formulas[i]
            assert formula is not None
            return unbroadcast(formula(ct, None, *args, **params), x.aval.shape)

        return [of(i, x) for i, x in enumerate(args)]

    return transpose


def linear(
    p: Primitive, transpose: Callable[..., Any], batch: Callable[..., Any] | None = None, *, operand: int = 0
) -> Primitive:
    """Derives the rules of a primitive that is linear in one operand.

    ``transpose(ct, aval, *others, **params)`` returns the cotangent of that operand, whose type is ``aval``. The jvp is
    the primitive itself, applied to the tangent.
    """

    def transposed(cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
        x, others = args[operand], (*args[:operand], *args[operand + 1 :])
        result: list[Any] = [None] * len(args)
        if is_undef(x):
            result[operand] = Zero(x.aval) if type(cts[0]) is Zero else transpose(cts[0], x.aval, *others, **params)
        return result

    p.linear_in = (operand,)
    p.jvp, p.transpose = linear_jvp(p, slice(operand, operand + 1)), transposed
    if batch is not None:
        p.batch = batch
    return p


# --- batching -------------------------------------------------------------------------------------------------------


def elementwise_batch(p: Primitive) -> Callable[..., tuple[list[Any], list[int | None]]]:
    """The batch rule of an elementwise primitive; unbatched operands are stretched, never copied."""

    def batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        operands, dim = align(args, dims)
        return p.bind_all(*operands, **params), [dim]

    return batch


def align(args: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], int]:
    """Operands that broadcast with each other, and the common position of their batch axes."""
    batched = {(np.ndim(x), d) for x, d in zip(args, dims, strict=True) if d is not None}
    if len(batched) == 1 and all(d is not None or np.ndim(x) == 0 for x, d in zip(args, dims, strict=True)):
        return list(args), next(iter(batched))[1]
    rank = max(np.ndim(x) - (d is not None) for x, d in zip(args, dims, strict=True))
    return [_leading(x, d, rank) for x, d in zip(args, dims, strict=True)], 0


def _leading(x: Any, dim: int | None, rank: int) -> Any:
    """``x`` with its batch axis in front of ``rank`` dimensions; scalars stay."""
    if dim is None:
        return expand_dims(x, (0,)) if np.ndim(x) else x
    x = move_axis(x, dim, 0)
    shape = np.shape(x)
    return reshape(x, (shape[0],) + (1,) * rank) if len(shape) == 1 and rank else x


def materialize(axis: Any, args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """All operands with the mapped axis in front, copied where there was none."""
    return [match_axis(axis, d, 0, x) for x, d in zip(args, dims, strict=True)]
