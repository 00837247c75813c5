"""``while_loop``, ``fori_loop``, ``scan`` and ``map``, as users call them."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from polyax.control.flow.scan import scan_p
from polyax.control.flow.while_loop import while_p
from polyax.control.inner.bodies import settled, traced
from polyax.control.inner.differences import carries, first_parameter
from polyax.control.inner.lists import as_arrays, kept, merged, partition
from polyax.control.inner.programs import forwarded, hoisted, reordered, without_inputs
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.config import config
from polyax.ir.dims import dim_index, max_dim
from polyax.ir.errors import ConcretizationTypeError, TracerIntegerConversionError
from polyax.ir.jaxpr import ClosedJaxpr, Literal
from polyax.ir.refs import is_ref, met
from polyax.meshes.explicit import without_dim
from polyax.ops.basis import add, convert_element_type, reshape
from polyax.ops.compare import lt
from polyax.ops.joining import concatenate, stack
from polyax.ops.slicing import index_in_dim, slice_in_dim
from polyax.trace.aliases import refuse_both, refuse_twice
from polyax.trace.flat import Flat, arg_names
from polyax.trace.paths import keystr, tree_leaves_with_path
from polyax.trace.recording import SourceOf
from polyax.trace.tracer import Tracer
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten
from polyax.transforms.vmap import AxisData, batch_flat, match_axis

__all__ = ["fori_loop", "map", "scan", "while_loop"]


def while_loop(cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init_val: Any) -> Any:
    """``while cond_fun(val): val = body_fun(val)``, from ``init_val`` on; compiled as one loop.

    Differentiable in forward mode only: the number of iterations isn't known before.

    Args:
      cond_fun: gives a boolean scalar.
      body_fun: gives a value of the structure and types of its argument.
      init_val: a pytree of arrays.

    Raises:
      TypeError: ``cond_fun`` gives no boolean scalar, or ``body_fun`` changes the type of its argument.

    >>> while_loop(lambda x: x < 10, lambda x: x + 3, 0).item()
    12
    """
    if not (callable(cond_fun) and callable(body_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    leaves, tree = tree_flatten(init_val)
    if config.disable_jit and not any(isinstance(x, Tracer) for x in leaves):
        try:
            return _while_in_python(cond_fun, body_fun, init_val)
        except ConcretizationTypeError:  # it depends on a tracer that a function closes over
            pass
    test, test_tree = traced(cond_fun, (init_val,), what="while_cond")  # its checks come first
    sides = lambda: carries("while_loop body function", first_parameter(body_fun))
    body, _, init = settled(
        lambda val: traced(body_fun, (val,), what="while_body"), leaves, tree, lambda out, _: out, sides
    )
    if test.in_avals != body.in_avals:  # the body has settled the types of carries
        test, test_tree = traced(cond_fun, (tree_unflatten(tree, body.in_avals),), what="while_cond")
    _check_test(test, test_tree)
    return tree_unflatten(tree, _bind_while(test, body, init))


def _while_in_python(cond_fun: Callable[..., Any], body_fun: Callable[..., Any], val: Any) -> Any:
    """With ``disable_jit``: each step runs, and can be debugged, on its own."""
    while cond_fun(val):
        val = body_fun(val)
    return val


def _bind_while(test: ClosedJaxpr, body: ClosedJaxpr, init: Sequence[Any]) -> list[Any]:
    """Carries that the body gives on as it gets them, and that the test doesn't read, are constants of the body."""
    (cond, of_cond), (body, of_body) = hoisted(test), hoisted(body)
    read = _reads(cond)
    places = enumerate(zip(forwarded(body), read[len(of_cond) :], strict=True), len(of_body))
    fixed = [same == n and not r for n, (same, r) in places]
    if all(fixed):  # a loop without a carry
        fixed = [False] * len(init)
    constant, carry = partition(fixed, init)
    outs = while_p.bind(
        *of_cond,
        *of_body,
        *constant,
        *carry,
        cond_jaxpr=without_inputs(cond, (*[True] * len(of_cond), *[not f for f in fixed])),
        cond_nconsts=len(of_cond),
        body_jaxpr=_with_constants(body, len(of_body), fixed),
        body_nconsts=len(of_body) + len(constant),
    )
    return merged(fixed, as_arrays(constant), outs)


def _reads(program: ClosedJaxpr) -> list[bool]:
    """Which inputs the program reads, be it for what nobody needs: that may be checked (``checkify``)."""
    used = itertools.chain(program.jaxpr.outvars, *(e.invars for e in program.eqns))
    read = {v for v in used if not isinstance(v, Literal)}
    return [v in read for v in program.jaxpr.invars]


def _with_constants(body: ClosedJaxpr, first: int, fixed: Sequence[bool], more: Sequence[bool] = ()) -> ClosedJaxpr:
    """The program to which carries are constants, which it doesn't give on; they begin at input number ``first``.

    ``more``: which of its further outputs it doesn't give either.
    """
    if not any((*fixed, *more)):
        return body
    end = first + len(fixed)
    constant, carry = partition(fixed, range(first, end))
    order = (*range(first), *constant, *carry, *range(end, len(body.in_avals)))
    return reordered(body, order, tuple(n for n, left_out in enumerate((*fixed, *more)) if not left_out))


def _check_test(test: ClosedJaxpr, tree: PyTreeDef) -> None:
    if tree != tree_structure(0):
        raise TypeError(f"cond_fun must return a boolean scalar, but got pytree {tree}.")
    (aval,) = test.out_avals
    if aval.shape or aval.dtype != np.dtype(bool):
        raise TypeError(f"cond_fun must return a boolean scalar, but got output type(s) [{aval!r}].")


def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Calls ``carry, y = f(carry, x)`` for each slice ``x`` of ``xs``; gives the last carry and all ``y``, stacked.

    Differentiable in both modes, and compiled as one loop.

    Args:
      f: gives a pair of a carry, of the structure and types of ``init``, and any pytree. If its pair is a list, so is
        that of the results.
      init: the first carry, a pytree of arrays.
      xs: a pytree of arrays of one leading size; None to run ``length`` times.
      length: the number of steps, if ``xs`` doesn't tell.
      reverse: from the last slice to the first; ``ys`` are in the order of ``xs`` all the same.
      unroll: how many steps one iteration of the compiled loop may take; True for all.

    Raises:
      TypeError: ``f`` doesn't return a pair, or changes the type of the carry.
      ValueError: leading sizes differ, or neither ``xs`` nor ``length`` is given.

    >>> total, sums = scan(lambda c, x: (c + x, c + x), 0, np.arange(1, 5, dtype=np.int32))
    >>> print(total, sums)
    10 [ 1  3  6 10]
    """
    if not callable(f):
        raise TypeError("lax.scan: f argument should be a callable.")
    steps = length_of(xs, length)
    return _scan(f, init, xs, steps, reverse, unroll)


def _scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any,
    steps: int,
    reverse: bool = False,
    unroll: int | bool = 1,
    made_from: tuple[Callable[..., Any], Hashable] | None = None,
) -> tuple[Any, Any]:
    """``made_from``: the user's function, and for what ``f`` was made from it."""
    if config.disable_jit and not any(isinstance(x, Tracer) for x in tree_leaves((init, xs))):
        return _scan_in_python(f, init, xs, steps, reverse)
    owner, role = made_from or (f, None)
    leaves, tree = tree_flatten(init)
    x_leaves, x_tree = tree_flatten(xs)
    slices = tree_unflatten(x_tree, [_slice_aval(x) for x in x_leaves])
    if met.any:
        refuse_twice([*leaves, *x_leaves], _source(owner, init, xs))
    sides = lambda: carries("scan body function", "loop_carry" if made_from else first_parameter(f))
    body, out_tree, first = settled(
        lambda carry: traced(f, (carry, slices), owner, role, "fori_loop" if role == "fori_loop" else "scan"),
        leaves,
        tree,
        lambda *out: _pair(*out)[0],
        sides,
    )
    if met.any:
        refuse_both(body.consts, [*leaves, *x_leaves], _source(owner, init, xs))
    body, consts = hoisted(body)
    settings = {"length": steps, "reverse": bool(reverse), "unroll": _unroll(unroll, steps)}
    return tree_unflatten(out_tree, _bind_scan(body, consts, first, x_leaves, settings))


def _bind_scan(
    body: ClosedJaxpr, consts: Sequence[Any], init: Sequence[Any], xs: Sequence[Any], settings: dict[str, Any]
) -> list[Any]:
    """Carries that the body gives on as it gets them are constants; slices that it gives on are ``xs`` again."""
    same, begin = forwarded(body), len(consts) + len(init)
    fixed = [k == n for n, k in enumerate(same[: len(init)], len(consts))]
    again = [k is not None and k >= begin and not is_ref(xs[k - begin]) for k in same[len(init) :]]
    constant, carry = partition(fixed, init)
    known = [*constant, *[xs[k - begin] for k in kept(again, same[len(init) :]) if k is not None]]
    mask = (*fixed, *again)
    program = _with_constants(body, len(consts), fixed, again)
    if all(mask) and not body.eqns:
        return as_arrays(known)
    counts = {"num_carry": len(carry), "num_consts": len(consts) + len(constant)}
    outs = scan_p.bind(*consts, *constant, *carry, *xs, jaxpr=program, **counts, **settings)
    return merged(mask, as_arrays(known), outs)


def _source(f: Callable[..., Any], *args: Any) -> SourceOf:
    return SourceOf(f, lambda: arg_names(f, args, {}), "scan")


def _pair(out_tree: PyTreeDef, avals: Sequence[ShapedArray]) -> list[PyTreeDef]:
    children = out_tree.children()
    if len(children) != 2:
        raise TypeError(f"scan body output must be a pair, got {tree_unflatten(out_tree, avals)!s}.")
    return children


def _unroll(unroll: int | bool, steps: int) -> int:
    if unroll is True:
        return max(1, steps)
    unroll = operator.index(unroll)
    if unroll < 0:
        raise ValueError(f"`unroll` must be a `bool` or a non-negative `int`, got {unroll}")
    return max(1, unroll)


def length_of(xs: Any, length: int | None) -> int:
    sizes: dict[int, tuple[Any, ShapedArray]] = {}
    for path, x in tree_leaves_with_path(xs):
        aval = aval_of(x)
        if not aval.shape:
            what = f"xs{keystr(path)} is {aval.str_short()}"
            raise ValueError(f"scan got value with no leading axis to scan over: {what}.")
        sizes.setdefault(aval.shape[0], (path, aval))
    if len(sizes) > 1:
        which = "; ".join([f"xs{keystr(path)} is {aval.str_short()}" for path, aval in sizes.values()])
        raise ValueError(f"scan got values with different leading axis sizes: {str([*sizes])[1:-1]} ({which}).")
    if length is None:
        if not sizes:
            raise ValueError("scan got no values to scan over and `length` not provided: give it `xs` or `length`.")
        return next(iter(sizes))
    try:
        wanted = dim_index(int(length) if isinstance(length, float) else length)
    except TracerIntegerConversionError as e:
        raise ConcretizationTypeError(
            "The `length` argument to `scan` expects a concrete `int` value. For loops whose length is computed, use "
            f"`while_loop` or `fori_loop`. {e}"
        ) from None
    except TypeError:
        raise TypeError(f"The `length` argument to `scan` expects a concrete `int` value, got {length!r}.") from None
    if sizes and wanted not in sizes:
        raise ValueError(f"scan got `length` argument of {wanted} which disagrees with leading axis sizes {[*sizes]}.")
    return wanted


def _slice_aval(x: Any) -> ShapedArray:
    aval = aval_of(x)
    if aval.told is not None and aval.told.spec.partitions[0] is not None:
        raise ValueError(f"0th dimension of all xs should be replicated. Got {aval.told.spec}")
    return without_dim(aval, 0)


def _scan_in_python(f: Callable[..., Any], carry: Any, xs: Any, steps: int, reverse: bool) -> tuple[Any, Any]:
    """The same for ``scan``."""
    if not steps:
        raise ValueError("zero-length scan is not supported in disable_jit() mode because the output type is unknown.")
    ys: list[Any] = []
    for n in reversed(range(steps)) if reverse else range(steps):
        carry, y = f(carry, tree_map(lambda x, n=n: x.at[n] if is_ref(x) else index_in_dim(x, n, keepdims=False), xs))
        ys.append(y)
    return carry, tree_map(lambda *parts: stack(parts), *(ys[::-1] if reverse else ys))


def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[..., Any], init_val: Any, *, unroll: int | bool | None = None
) -> Any:
    """``for i in range(lower, upper): val = body_fun(i, val)``, compiled as one loop.

    Differentiable in both modes if the bounds are known while tracing; else in forward mode.

    Raises:
      OverflowError: the type of integers can't hold a bound.

    >>> fori_loop(0, 5, lambda i, x: x + i, 0).item()
    10
    """
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    dtype = _index_dtype([aval_of(x) for x in (lower, upper)])
    if not any(isinstance(x, Tracer) for x in (lower, upper)):
        for x in (lower, upper):
            if type(x) is int and not dtypes.iinfo(dtype).min <= x <= dtypes.iinfo(dtype).max:
                raise OverflowError(f"fori_loop: the bound {x} is too large for {dtype}; see config.enable_x64")
        start, stop = _turn(lower), _turn(upper)
        if config.disable_jit and stop <= start:
            return init_val

        @functools.wraps(body_fun)
        def step(carry: Any, _: Any) -> Any:
            i, val = carry
            return (add(i, 1), body_fun(i, val)), None

        made_from = body_fun, "fori_loop"
        (_, val), _ = _scan(step, (start, init_val), None, max_dim(stop - start, 0), False, unroll or 1, made_from)
        return val
    if unroll not in (None, False, 1):
        raise ValueError("Can only use `unroll` in `fori_loop` if the loop bounds are statically known.")

    @functools.wraps(body_fun)
    def body(carry: Any) -> Any:
        i, stop, val = carry
        return add(i, 1), stop, body_fun(i, val)

    limits = [x if aval_of(x).dtype == dtype else convert_element_type(x, dtype) for x in (lower, upper)]
    return while_loop(lambda carry: lt(carry[0], carry[1]), body, (*limits, init_val))[2]


def _index_dtype(bounds: Sequence[ShapedArray]) -> Any:
    strong = [a.dtype for a in bounds if not a.weak_type]
    kinds = {(dtypes.is_float(a.dtype), a.dtype == bool) for a in bounds}
    if len(set(strong)) > 1 or len(kinds) > 1:
        raise TypeError(
            "lower and upper arguments to fori_loop must have equal types, got "
            f"{' and '.join(a.dtype.name for a in bounds)}"
        )
    if any(a.shape for a in bounds):
        raise TypeError(f"fori_loop bounds must be scalars, got {bounds[0]} and {bounds[1]}.")
    return strong[0] if strong else bounds[0].dtype


def _turn(bound: Any) -> Any:
    """A bound that is known, as a number of turns: of a float, what is before its point."""
    return int(bound) if dtypes.is_float(aval_of(bound).dtype) else dim_index(bound)


def map(f: Callable[..., Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """``f`` of each slice of ``xs``, one after the other; the results stacked.

    Args:
      batch_size: so many slices are computed together, as by ``vmap``.

    >>> print(map(lambda x: x * x, np.arange(4)))
    [0 1 4 9]
    """
    if not callable(f):
        raise TypeError("lax.scan: f argument should be a callable.")
    steps = length_of(xs, None)
    if not batch_size:
        return _scan(lambda _, x: ((), f(x)), (), xs, steps, made_from=(f, "map"))[1]
    full, rest = divmod(steps, batch_size)
    if full == 0 and rest:
        return _mapped(f, xs, rest)
    size = full * batch_size
    batches = tree_map(lambda x: reshape(slice_in_dim(x, 0, size), (full, batch_size, *aval_of(x).shape[1:])), xs)
    ys = _scan(lambda _, x: ((), _mapped(f, x, batch_size)), (), batches, full, made_from=(f, ("map", batch_size)))[1]
    ys = tree_map(lambda y: reshape(y, (size, *y.shape[2:])), ys)
    if not rest:
        return ys
    last = _mapped(f, tree_map(lambda x: slice_in_dim(x, size, steps), xs), rest)
    return tree_map(lambda a, b: concatenate([a, b], 0), ys, last)


def _mapped(f: Callable[..., Any], xs: Any, size: int) -> Any:
    """``f`` of all slices at once."""
    leaves, tree = tree_flatten(((xs,), {}))
    flat = Flat(f, tree)
    outs, dims = batch_flat(flat, axis := AxisData(size), leaves, [0] * len(leaves))
    return flat.unflatten([match_axis(axis, d, 0, x) for x, d in zip(outs, dims, strict=True)])
