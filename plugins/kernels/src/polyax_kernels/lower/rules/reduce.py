"""Reductions are folds; running sums and the like are loops in order along their axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from polyax.control.folds import reducers
from polyax.ir.primitive import Primitive
from polyax.ops.cumulative import cumlogsumexp_p, cumprod_p, cumsum_p
from polyax.ops.recurrence import linear_recurrence_p
from polyax_kernels.ir.expr import PICKS, Axis, Expr, cast, const, fold, index, op, where
from polyax_kernels.ir.kernel import Stage, Store
from polyax_kernels.lower.lowering import Kernels, Out, Read, Update
from polyax_kernels.lower.rules.table import RULES, kernels
from polyax_kernels.lower.widened import in_float32

COMBINE = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "and": "and", "or": "or", "xor": "xor"}


def identity(combine: str, dtype: np.dtype) -> Expr:
    """The value that ``combine`` leaves everything as it is with."""
    return const(reducers.identity(combine.removeprefix("arg"), dtype), dtype)


def _over(x: Read, axes: Sequence[int], out: Out) -> tuple[tuple[Axis, ...], list[Expr]]:
    """New axes for the dimensions ``axes`` of ``x``, and indices of all its dimensions."""
    folded = {d: Axis(x.shape[d], f"r{d}") for d in sorted(axes)}
    rest = iter(out.i)
    return tuple(folded.values()), [index(folded[d]) if d in folded else next(rest) for d in range(len(x.shape))]


def _reduction(combine: str) -> Callable[..., Expr]:
    def build(out: Out, x: Read, *, axes: Sequence[int], **_: Any) -> Expr:
        folded, i = _over(x, axes, out)
        return fold(combine, folded, (identity(combine, x.dtype),), (x(*i),)) if folded else x(*i)

    return build


def _arg_extremum(combine: str) -> Callable[..., Expr]:
    def build(out: Out, x: Read, *, axes: Sequence[int], index_dtype: Any) -> Expr:
        folded, i = _over(x, axes, out)
        inits = identity(combine, x.dtype), const(0, index_dtype)
        return fold(combine, folded, inits, (x(*i), cast(index(folded[0]), index_dtype)), 1)

    return build


def _running(step: Callable[..., Expr], start: str) -> Callable[..., Update]:
    def build(out: Out, *xs: Read, axis: int, reverse: bool = False) -> Update:
        """``out[k] = step(out[k-1], *[x[k] for x in xs])`` along ``axis``; ``start`` names what comes before."""
        k = Axis(out.shape[axis], f"k{axis}")
        grid = tuple([a for d, a in enumerate(out.axes) if d != axis])
        n = index(k)
        at = const(out.shape[axis] - 1) - n if reverse else n
        here = [at if d == axis else i for d, i in enumerate(out.i)]
        before = [at + (1 if reverse else -1) if d == axis else i for d, i in enumerate(out.i)]
        previous = out.load(*before, mask=n > 0, other=identity(start, out.dtype))
        store = Store(out.slot, tuple(here), step(previous, *[x(*here) for x in xs]))
        return Update(grid, (Stage((k,), (store,)),))

    return build


def _logaddexp(x: Expr, y: Expr) -> Expr:
    """``log(exp(x) + exp(y))``; the larger one is taken out, unless it is infinite or NaN."""
    top = op("max", x, y)
    return where(op("is_finite", top), top + op("log1p", op("exp", -op("abs", x - y))), top)


RULES.update({f"reduce_{name}": Kernels(_reduction(combine)) for name, combine in COMBINE.items()})
RULES.update({name: Kernels(_arg_extremum(name)) for name in PICKS})


def _add_running(primitive: Primitive, build: Callable[..., Update]) -> None:
    """What rounds in each step does so in float32."""
    RULES[primitive.name] = (in_float32(primitive), Kernels(build))


_add_running(cumsum_p, _running(partial(op, "add"), "add"))
_add_running(cumprod_p, _running(partial(op, "mul"), "mul"))
_add_running(cumlogsumexp_p, _running(_logaddexp, "max"))
_add_running(linear_recurrence_p, _running(lambda before, a, b: a * before + b, "add"))
RULES.update({f"cum{name}": Kernels(_running(partial(op, name), name)) for name in ("max", "min")})


@kernels("dot_general")
def _dot_general(
    out: Out, x: Read, y: Read, *, dimension_numbers: Any, preferred_element_type: Any = None, **_: Any
) -> Expr:
    """``sum over k of x[batch, i, k] * y[batch, j, k]``: what runs where no library does."""
    (x_contract, y_contract), (x_batch, y_batch) = dimension_numbers
    axes = tuple([Axis(x.shape[d], f"k{n}") for n, d in enumerate(x_contract)])
    batch = out.i[: len(x_batch)]
    free = iter(out.i[len(x_batch) :])
    products: list[Expr] = []
    for a, contract, batched in ((x, x_contract, x_batch), (y, y_contract, y_batch)):
        known = dict(zip(contract, map(index, axes), strict=True)) | dict(zip(batched, batch, strict=True))
        indices = [known[d] if d in known else next(free) for d in range(len(a.shape))]
        products.append(cast(a(*indices), out.dtype))
    times, plus = ("and", "or") if out.dtype == bool else ("mul", "add")
    product = op(times, *products)
    return fold(plus, axes, (const(0, out.dtype),), (product,)) if axes else product
