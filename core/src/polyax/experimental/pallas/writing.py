"""What kernels are written with: conditions, loops, scratch memory, and arithmetic of sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from polyax import debug
from polyax import numpy as jnp
from polyax.control.refs.access import freeze, new_ref
from polyax.experimental.pallas.mapping import uninitialized
from polyax.lax import lenient as lax
from polyax.trace.tree import tree_map


def when(condition: Any, /) -> Callable[[Callable[[], None]], None]:
    """A decorator that calls the function where the condition holds, which may be computed.

    >>> import polyax
    >>> ref = polyax.new_ref(1)
    >>> @when(ref[...] > 0)
    ... def _():
    ...     ref[...] = 5
    >>> print(ref[...])
    5
    """

    def decorate(fun: Callable[[], None]) -> None:
        if not isinstance(condition, bool):
            lax.cond(condition, fun, lambda: None)
        elif condition:
            fun()

    return decorate


def loop(
    lower: Any, upper: Any, *, init_carry: Any = None, step: Any = 1, unroll: int | bool | None = None
) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that calls the function with each number from ``lower`` up to ``upper``, by ``step``.

    Args:
      init_carry: what the function gets as well at first, and then what it has returned.

    Returns:
      In place of the function what it returned last.

    >>> @loop(0, 6, step=2, init_carry=0)
    ... def total(i, sum):
    ...     return sum + i
    >>> print(total)
    6
    """

    def decorate(body: Callable[..., Any]) -> Any:
        def turn(n: Any, carry: Any) -> Any:
            i = lower + n * step
            return body(i) if init_carry is None else body(i, carry)

        return lax.fori_loop(0, cdiv(upper - lower, step), turn, init_carry, unroll=unroll)

    return decorate


def run_scoped(f: Callable[..., Any], *types: Any, collective_axes: Any = (), **kw_types: Any) -> Any:
    """Calls ``f`` with references to new memory, one for each of the types, which may be pytrees of such.

    >>> from polyax.experimental.pallas.blocks import KernelMemory
    >>> def count(ref):
    ...     ref[...] = 2.0
    ...     return ref[...] + 1
    >>> print(run_scoped(count, KernelMemory.ANY((), "float32")))
    3.0
    """
    return f(*tree_map(_scratch, types), **tree_map(_scratch, kw_types))


def with_scoped(*types: Any, collective_axes: Any = (), **kw_types: Any) -> Callable[..., Any]:
    """A decorator of functions that get references to new memory after their arguments."""

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: run_scoped(lambda *refs, **named: f(*args, *refs, **named), *types, **kw_types)

    return decorate


def _scratch(kind: Any) -> Any:
    return new_ref(uninitialized(kind.shape, kind.dtype))


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Any:
    """An array whose contents are yet to be written, cut as ``out_sharding`` says.

    >>> empty((2,), "float32").tolist()
    [nan, nan]
    """
    return jnp.asarray(uninitialized(shape, dtype), out_sharding=out_sharding)


def broadcast_to(a: Any, shape: Sequence[int]) -> Any:
    """``a`` repeated to be of that shape.

    >>> broadcast_to(1, (2,)).tolist()
    [1, 1]
    """
    return jnp.broadcast_to(a, shape)


def empty_like(x: Any) -> Any:
    """For each leaf of ``x`` an array of its shape and dtype, whose contents are yet to be written."""
    return tree_map(lambda leaf: empty(leaf.shape, leaf.dtype), x)


def empty_ref_like(x: Any) -> Any:
    """A reference to memory of the shape and dtype of ``x``."""
    return _scratch(x)


def multiple_of(x: Any, values: Sequence[int] | int) -> Any:
    """``x``, of which the caller knows that it is a multiple of ``values``. For compatibility."""
    return x


def reciprocal(x: Any, *, approx: bool = False, full_range: bool = True) -> Any:
    """``1 / x``; an approximation is taken from bfloat16, as interpreted kernels of JAX do.

    >>> print(reciprocal(jnp.float32(4.0)))
    0.25
    """
    return jnp.reciprocal(x.astype(jnp.bfloat16)).astype(x.dtype) if approx else jnp.reciprocal(x)


def run_state(f: Callable[[Any], None]) -> Callable[[Any], Any]:
    """A function of a pytree of arrays that calls ``f`` with references to them, and gives what these hold at last.

    >>> def swap(refs):
    ...     x, y = refs
    ...     x[...], y[...] = y[...], x[...]
    >>> x, y = run_state(swap)((1, 2))
    >>> print(x, y)
    2 1
    """

    def call(args: Any) -> Any:
        refs = tree_map(new_ref, args)
        f(refs)
        return tree_map(freeze, refs)

    return call


def debug_print(fmt: str, *args: Any) -> None:
    """Prints values while kernels run, as ``polyax.debug.print`` does; a text that names none is printed before
    them."""
    text = fmt if not args or "{" in fmt else fmt + " {}" * len(args)
    debug.print(text, *args)


def cdiv(a: Any, b: Any) -> Any:
    """``a / b`` rounded up, of integers or arrays of them.

    >>> cdiv(9, 2)
    5
    """
    return -(-a // b) if isinstance(a, int) and isinstance(b, int) else lax.div(a + (b - 1), b)


def align_to(a: Any, alignment: Any) -> Any:
    """``a`` rounded up to a multiple of ``alignment``.

    >>> align_to(5, 4)
    8
    """
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The least power of two that is at least ``x``.

    Raises:
      ValueError: ``x`` is negative.

    >>> next_power_of_2(5)
    8
    """
    if x < 0:
        raise ValueError("`next_power_of_2` requires a non-negative integer.")
    return 1 if x == 0 else 2 ** (x - 1).bit_length()


def strides_from_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """How many elements apart neighbours along each dimension are.

    >>> strides_from_shape((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(shape[n + 1 :]) for n in range(len(shape)))
