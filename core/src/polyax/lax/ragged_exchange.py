"""``ragged_all_to_all``: each device sends a slice of rows to each other one, of sizes that only values tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.lax import lenient as lax


def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: Any,
    axis_index_groups: Any = None,
) -> Any:
    """``output`` with rows of the operands of all devices along an axis. All of them are gathered first.

    Args:
      operand: ``[n, ...]``, whose rows are sent.
      output: ``[m, ...]``: what is left where nobody sends anything to.
      input_offsets, send_sizes: for each device, which rows it gets: where they begin, and how many.
      output_offsets: for each device, at which of its rows they are put.
      recv_sizes: for each device, how many rows it sends here. That follows from what they send; it isn't read.
      axis_index_groups: must be None.

    Raises:
      ValueError: shapes don't fit each other, or offsets and sizes aren't vectors of integers.
    """
    if axis_index_groups is not None:
        raise NotImplementedError("ragged_all_to_all: axis_index_groups isn't built; name the axes of a mesh instead")
    avals = [aval_of(x) for x in (operand, output)]
    _check_rows(*avals)
    for name, x in zip(_NAMES, (input_offsets, send_sizes, output_offsets, recv_sizes), strict=True):
        _check_numbers(name, aval_of(x), lax.axis_size(axis_name))
    me = lax.axis_index(axis_name)
    rows = lax.all_gather(operand, axis_name)
    starts, sizes, places = (
        lax.dynamic_index_in_dim(lax.all_gather(x, axis_name), me, 1, keepdims=False)
        for x in (input_offsets, send_sizes, output_offsets)
    )
    return _received(rows, output, starts, sizes, places)


def _received(rows: Any, output: Any, starts: Any, sizes: Any, places: Any) -> Any:
    """For each row of the output, the row that some device sends there; ``rows[device]`` are those that it has."""
    count, kind = aval_of(rows).shape[1], aval_of(starts).dtype
    size = aval_of(output).shape[0]
    at = lax.broadcasted_iota(kind, (aval_of(starts).shape[0], size), 1)
    places, sizes, starts = (lax.broadcast_in_dim(x, at.shape, (0,)) for x in (places, sizes, starts))
    beyond = lax.sub(at, places)
    sent = lax.bitwise_and(lax.ge(beyond, 0), lax.lt(beyond, sizes))
    sender = lax.argmax(sent, 0, np.int32)
    own = lax.broadcasted_iota(np.int32, at.shape, 0)
    mine = lax.bitwise_and(sent, lax.eq(own, lax.broadcast_in_dim(sender, at.shape, (1,))))
    row = lax.reduce_sum(lax.select(mine, lax.add(starts, beyond), lax.full_like(beyond, 0)), (0,))
    flat = lax.reshape(rows, (rows.shape[0] * count, *rows.shape[2:]))
    index = lax.add(lax.mul(sender, np.int32(count)), lax.convert_element_type(row, np.int32))
    found = lax.index_take(flat, (index,), (0,))
    anyone = lax.reduce_or(sent, (0,))
    return lax.select(lax.broadcast_in_dim(anyone, output.shape, (0,)), lax.reshape(found, output.shape), output)


_NAMES = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


def _check_rows(operand: ShapedArray, output: ShapedArray) -> None:
    if operand.dtype != output.dtype:
        raise ValueError(
            f"ragged_all_to_all operand and output must have the same dtype, got {operand.dtype} and {output.dtype}."
        )
    if operand.ndim < 1 or operand.shape[1:] != output.shape[1:]:
        raise ValueError(
            "ragged_all_to_all input and output shapes must be equal, except for the outermost dimension; got "
            f"{operand.str_short()} and {output.str_short()}."
        )


def _check_numbers(name: str, aval: ShapedArray, size: int) -> None:
    if not dtypes.is_integer(aval.dtype):
        raise ValueError(f"ragged_all_to_all {name} must be integer type, got {aval.str_short()}.")
    if aval.shape != (size,):
        raise ValueError(
            f"ragged_all_to_all {name} must be rank 1, with a number for each of the {size} devices; got "
            f"{aval.str_short()}."
        )
