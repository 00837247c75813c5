"""Derivatives against finite differences: ``check_jvp``, ``check_vjp`` and ``check_grads``.

Each check takes one random direction, so that its price doesn't grow with the number of arguments. Knows the public
transformations; the other side of the comparison is computed by NumPy in double precision from the function's values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from polyax.api.jvp import jvp, linearize
from polyax.api.vjp import vjp
from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.numpy import asarray
from polyax.testing.closeness import Tolerance, check_types, compare, float0, is_inexact, least_precise, wide
from polyax.trace.tree import tree_flatten, tree_leaves, tree_map, tree_unflatten

EPS = 1e-4
STEPS = {"bfloat16": 0.1, "float16": 5e-2, "float32": 5e-3, "float64": EPS}
"""Where the errors of rounding and of truncation in a central difference are about equal, for functions of order 1."""


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
) -> None:
    """Checks the derivatives of ``f`` at ``args`` against finite differences, in all combinations of modes.

    Args:
      f: a function of pytrees of arrays. Arguments and results that aren't floats or complex numbers are held fixed.
      order: up to which order; with 2, also derivatives of each mode's derivative by each mode.
      modes: which of ``"fwd"`` (``jvp``), ``"rev"`` (``vjp``) and ``"lin"`` (``linearize``).
      atol, rtol: numbers, or dictionaries by dtype; ``rtol`` is relative to the largest element of a result.
      eps: the step of the differences; by default, one that suits the least precise argument.

    Raises:
      AssertionError: values, types or structures differ; the text shows both, and names the modes, the order, and the
        place in the result.

    >>> import numpy as np
    >>> check_grads(lambda x: x * x, (np.float32(3),), order=2)
    """
    unknown = set(modes) - set(MODES)
    if unknown or order < 1:
        raise ValueError(f"check_grads knows the modes {', '.join(MODES)} and orders from 1; got {modes}, {order}")
    g, xs = _of_inexact(f, args)
    _check_grads(g, xs, modes, order, "", {"atol": atol, "rtol": rtol, "eps": eps or _step(xs)})


def _check_grads(
    f: Callable[..., Any], args: tuple[Any, ...], modes: Sequence[str], order: int, before: str, how: dict[str, Any]
) -> None:
    for mode in modes:
        name, check, transformed, following = MODES[mode]
        chain = f"{name} of {before}" if before else name
        check(f, partial(transformed, f), args, err_msg=f"{chain} (order {chain.count(' of ') + 1})", **how)
        if order > 1:
            derivative, at = following(f, args)
            _check_grads(derivative, at, modes, order - 1, chain, how)


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float = EPS,
    err_msg: str = "",
) -> None:
    """Checks ``f_jvp(primals, tangents)``, which gives ``f``'s results and their tangents, as ``partial(jvp, f)`` does.

    Raises:
      AssertionError: as :func:`check_grads`.

    >>> import numpy as np
    >>> check_jvp(np.sin, lambda xs, ts: (np.sin(*xs), np.cos(*xs) * ts[0]), (np.float32(0.5),), eps=5e-3)
    """
    args = tuple(args)
    tangents = tree_map(partial(_direction, np.random.default_rng(0)), args)
    outs, dots = f_jvp(args, tangents)
    close = partial(compare, atol=atol, rtol=rtol)
    close(_label(err_msg, "primal"), outs, f(*args))
    check_types(_label(err_msg, "tangent"), dots, outs, tangent=True)
    close(_label(err_msg, "tangent"), dots, numerical_jvp(f, args, tangents, eps))


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float = EPS,
    err_msg: str = "",
) -> None:
    """Checks ``f_vjp(*args)``, which gives results of ``f`` and the pullback, as ``partial(vjp, f)`` does.

    The pullback is right if cotangents, paired with tangents before and after it, give one number.

    Raises:
      AssertionError: as :func:`check_grads`.

    >>> import numpy as np
    >>> check_vjp(np.sin, lambda x: (np.sin(x), lambda ct: (ct * np.cos(x),)), (np.float32(0.5),), eps=5e-3)
    """
    args = tuple(args)
    rng = np.random.default_rng(0)
    outs, pullback = f_vjp(*args)
    close = partial(compare, atol=atol, rtol=rtol)
    close(_label(err_msg, "primal"), outs, f(*args))
    tangents, cts = (tree_map(partial(_direction, rng), tree) for tree in (args, outs))
    back = pullback(cts)
    check_types(_label(err_msg, "cotangent"), back, args, tangent=True)
    expected = _paired(cts, numerical_jvp(f, args, tangents, eps))
    dtype = least_precise([*tree_leaves(args), *tree_leaves(outs)])
    close(_label(err_msg, "cotangent projection"), _paired(back, tangents), expected, dtype=dtype)


def numerical_jvp(f: Callable[..., Any], primals: Any, tangents: Any, eps: float = EPS) -> Any:
    """The central difference of ``f`` along ``tangents``, in double precision; zeros for results that don't vary."""
    ahead, behind = (f(*tree_map(partial(_moved, by=by), primals, tangents)) for by in (eps, -eps))
    return tree_map(lambda a, b: _difference(a, b) / (2 * eps) if is_inexact(a) else float0(a), ahead, behind)


def _difference(a: Any, b: Any) -> np.ndarray:
    """Infinities that agree differ by nothing."""
    a, b = wide(a), wide(b)
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0, a - b)


def _moved(x: Any, tangent: Any, by: float) -> Any:
    if tangent.dtype == dtypes.float0:
        return x
    return asarray((wide(x) + by * wide(tangent)).astype(aval_of(x).dtype))


def _direction(rng: np.random.Generator, x: Any) -> Any:
    """A random tangent of ``x``; an array of ``float0`` where there is none."""
    if not is_inexact(x):
        return float0(x)
    aval = aval_of(x)
    tangent = rng.standard_normal(aval.shape)
    if dtypes.is_complex(aval.dtype):
        tangent = tangent + 1j * rng.standard_normal(aval.shape)
    return np.asarray(tangent, aval.dtype)


def _paired(cts: Any, tangents: Any) -> np.ndarray:
    pairs = zip(tree_leaves(cts), tree_leaves(tangents), strict=True)
    return np.asarray(sum(np.real(np.sum(wide(c) * wide(t))) for c, t in pairs if is_inexact(t)))


def _of_inexact(f: Callable[..., Any], args: Sequence[Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """``f`` as a function of its arguments' inexact leaves, with only such leaves in the result."""
    leaves, tree = tree_flatten(tuple(args))
    moving = [is_inexact(x) for x in leaves]

    def of_inexact(*given: Any) -> Any:
        rest = (asarray(x) if isinstance(x, np.ndarray) else x for x in given)
        out = f(*tree_unflatten(tree, [next(rest) if m else x for x, m in zip(leaves, moving, strict=True)]))
        return tree_map(lambda x: x if is_inexact(x) else None, out)

    return of_inexact, tuple(x for x, m in zip(leaves, moving, strict=True) if m)


# --- modes ----------------------------------------------------------------------------------------------------------


def _linearized(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    out, linear = linearize(f, *primals)
    return out, linear(*tangents)


def _pulled_back(f: Callable[..., Any], *args: Any) -> Any:
    """The pullback, at the result itself."""
    out, pullback = vjp(f, *args)
    return pullback(out)


def _along_itself(forward: Callable[..., Any]) -> Callable[..., Any]:
    return lambda f, args: (partial(forward, f), (args, args))


MODES: dict[str, tuple[str, Callable[..., None], Callable[..., Any], Callable[..., Any]]] = {
    "fwd": ("JVP", check_jvp, jvp, _along_itself(jvp)),
    "rev": ("VJP", check_vjp, vjp, lambda f, args: (partial(_pulled_back, f), args)),
    "lin": ("LIN", check_jvp, _linearized, _along_itself(_linearized)),
}
"""Names, how each mode is checked, the transformation, and what makes its function and arguments of the next order."""


def _label(err_msg: str, what: str) -> str:
    return f"{err_msg}: the {what}" if err_msg else f"the {what}"


def _step(args: Sequence[Any]) -> float:
    return STEPS[least_precise(args).name]
