"""``lax.scatter_apply``: a function of scalars applied to the elements of an array that indices name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.control.flow.looping import while_loop
from polyax.control.folds.reducers import elementwise_on
from polyax.ir.aval import aval_of
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ops.basis import add, full, select_n, shape_tuple
from polyax.ops.compare import lt
from polyax.ops.gather import GatherScatterMode
from polyax.ops.reduce import reduce_max
from polyax.ops.scatter import ScatterDimensionNumbers, scatter, scatter_add, slices_at
from polyax.trace.flat import name_of, trace_tree


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """``operand`` with ``func`` applied to the elements in slices: as often as slices hold them, unless
    ``unique_indices`` promises that it is once.

    Args:
      func: a function of a scalar.
      update_shape: the shape that updates at the same indices would have.

    Raises:
      TypeError: ``func`` doesn't give a scalar of the operand's dtype.

    >>> import numpy as np
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> places = np.array([[0], [2], [2]])
    >>> print(scatter_apply(np.arange(1., 4.), places, lambda x: 10 * x, numbers, update_shape=(3,)))
    [ 10.   2. 300.]
    """
    flags = {
        "indices_are_sorted": bool(indices_are_sorted),
        "unique_indices": bool(unique_indices),
        "mode": GatherScatterMode.from_any(mode),
    }
    shape = shape_tuple(update_shape)
    if unique_indices:
        old = slices_at(operand, scatter_indices, shape, {"dimension_numbers": dimension_numbers, **flags})
        return scatter(operand, scatter_indices, applied(func, old), dimension_numbers, **flags)
    ones = full(shape, 1, np.int32)
    times = scatter_add(full(np.shape(operand), 0, np.int32), scatter_indices, ones, dimension_numbers, **flags)
    return _repeated(_program(func, operand), operand, times)


def applied(func: Callable[[Any], Any], x: Any) -> Any:
    """``func`` of each element."""
    (y,) = elementwise_on(_program(func, x))([x], [])
    return y


def _program(func: Callable[[Any], Any], operand: Any) -> ClosedJaxpr:
    aval = aval_of(operand).with_shape((), weak_type=False)
    program, _ = trace_tree(func, (aval,))
    found = program.out_avals
    if len(found) != 1 or found[0].shape or found[0].dtype != aval.dtype:
        gives = ", ".join(map(str, found))
        raise TypeError(
            f"the function of scatter_apply ({name_of(func)}) must map {aval} to one like it; gives {gives}"
        )
    return program


def _repeated(program: ClosedJaxpr, operand: Any, times: Any) -> Any:
    """Each element with the function applied to it as often as ``times`` says."""
    if not np.prod(np.shape(operand)):
        return operand
    most = reduce_max(times, range(np.ndim(times)))

    def step(carry: Any) -> Any:
        n, x = carry
        (new,) = elementwise_on(program)([x], [])
        return add(n, np.int32(1)), select_n(lt(n, times), x, new)

    return while_loop(lambda carry: lt(carry[0], most), step, (np.int32(0), operand))[1]
