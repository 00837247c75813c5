"""What says where gathers, scatters and slices lie: what doesn't fit is told apart, in XLA's words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax

FIVE = (0, 1, 2, 3, 4)
SHAPE = (10, 9, 8, 7, 6)
OFFSETS = (4, 5, 6, 7, 8)

Row = tuple[tuple[int, ...], tuple[Any, ...], tuple[int, ...], str]

GATHERS: list[Row] = [
    ((5, 4, 3, 2, 1), ((4, 5, 6, 8, 7), (), FIVE), SHAPE, "offset_dims in gather op must be sorted"),
    ((5, 4, 3, 2, 1), ((4, 5, 6, 7, 7), (), FIVE), SHAPE, "offset_dims in gather op must not repeat"),
    ((5, 4, 3, 2, 1), ((4, 5, 6, 7, 9), (), FIVE), SHAPE, "Offset dimension 4 in gather op is out of bounds"),
    ((5, 4, 3, 2, 5), (OFFSETS, (), (0, 1, 2, 3)), SHAPE, "Gather op has 4 elements in start_index_map"),
    ((5, 4, 3, 2, 5), (OFFSETS, (), (0, 1, 2, 3, 7)), SHAPE, "Invalid start_index_map; domain is [0, 5), got: 4->7."),
    ((5, 4, 3, 2, 5), (OFFSETS, (), (0, 1, 2, 3, 3)), SHAPE, "start_index_map in gather op must not repeat"),
    ((5, 4, 3, 2, 5), (OFFSETS, (2, 1), FIVE), SHAPE, "collapsed_slice_dims in gather op must be sorted"),
    ((5, 4, 3, 2, 5), (OFFSETS, (4,), FIVE), SHAPE, "must either be a offset dimension or explicitly collapsed"),
    ((5, 4, 3, 2, 3), ((4, 5, 6), (0, 1), (0, 1, 4), (2, 3, 3)), SHAPE, "operand_batching_dims in gather op must not"),
    ((5, 4, 3, 2, 3), ((4, 5, 6), (0, 1), (0, 1, 4), (3, 2)), SHAPE, "operand_batching_dims in gather op must be"),
    (
        (5, 4, 3, 2, 3),
        ((4, 5, 6), (0, 1, 2), (0, 1, 4), (2, 3)),
        SHAPE,
        "collapsed_slice_dims and operand_batching_dims",
    ),
    ((5, 4, 3, 2, 4), ((4, 5, 6), (0, 1), (0, 1, 2, 4), (2, 3)), SHAPE, "start_index_map and operand_batching_dims in"),
    ((9, 4, 3, 2, 4), (OFFSETS[:4], (), (0, 2, 3, 4), (1,), (0,)), SHAPE, "operand batching dims with bound 0/1"),
    ((5, 4, 3, 2, 5), ((4, 5, 6), (0, 1), FIVE, (), (0, 1, 0)), SHAPE, "start_indices_batching_dims in gather op must"),
    ((5, 4, 3, 2, 5), ((4, 5, 6), (0, 1), FIVE, (), (0, 4)), SHAPE, "cannot have the index vector dimension as a"),
    ((5, 4, 3, 2, 4), ((4, 5, 6), (1, 2), (1, 2, 3, 4), (0,), (0, 1)), SHAPE, "Gather op requires equal numbers of"),
    (
        (5, 4, 3, 2, 4),
        ((4, 5, 6, 7), (), (1, 2, 3, 4), (0,), (0,)),
        SHAPE,
        "to have the same shape, got (10,) and (5,)",
    ),
]

OPERAND = (50, 49, 48, 47, 46)
INDICES = (10, 9, 8, 7, 5)
UPDATES = (10, 9, 8, 7, 3, 2, 4)
WINDOW = (4, 5, 6)

SCATTERS: list[Row] = [
    (INDICES, ((4, 6, 5), (1, 2), FIVE), UPDATES, "update_window_dims in scatter op must be sorted"),
    (INDICES, ((4, 5, 7), (1, 2), FIVE), UPDATES, "Invalid update_window_dims set in scatter op"),
    (INDICES, (WINDOW, (1, 1), FIVE), UPDATES, "inserted_window_dims in scatter op must not repeat"),
    (INDICES, (WINDOW, (0, 1), (0, 1, 4), (2, 3, 3)), UPDATES, "operand_batching_dims in scatter op must not repeat"),
    (INDICES, (WINDOW, (0, 1), (0, 1, 4), (1, 2)), UPDATES, "inserted_window_dims and operand_batching_dims in"),
    (INDICES, (WINDOW, (0, 1), (0, 1, 2, 4), (2, 3)), UPDATES, "scatter_dims_to_operand_dims and operand_batching"),
    (INDICES, (WINDOW, (0, 1), FIVE, (), (0, 5)), UPDATES, "Invalid scatter_indices_batching_dims set in scatter op"),
    (INDICES, (WINDOW, (1,), FIVE), UPDATES, "Scatter op has window of size 4; doesn't match operand of rank 5."),
    (INDICES, (WINDOW, (1, 2), (0, 1, 2, 3)), UPDATES, "Scatter op has 4 elements in scatter_dims_to_operand_dims"),
    (INDICES, (WINDOW, (1, 2), (0, 1, 2, 3, 9)), UPDATES, "Invalid scatter_dims_to_operand_dims mapping; domain is"),
    (INDICES, (WINDOW, (1, 2), (0, 1, 2, 2, 3)), UPDATES, "scatter_dims_to_operand_dims in scatter op must not repeat"),
]


def _struct(shape: tuple[int, ...]) -> Any:
    return polyax.ShapeDtypeStruct(shape, np.int32)


@pytest.mark.parametrize(("indices", "numbers", "sizes", "text"), GATHERS, ids=range(len(GATHERS)))
def test_gathers(indices: tuple[int, ...], numbers: tuple[Any, ...], sizes: tuple[int, ...], text: str) -> None:
    def gather(x: Any, at: Any) -> Any:
        return lax.gather(x, at, lax.GatherDimensionNumbers(*numbers), sizes)

    with pytest.raises(TypeError) as caught:
        polyax.eval_shape(gather, _struct(SHAPE), _struct(indices))
    assert text in str(caught.value)


@pytest.mark.parametrize(("indices", "numbers", "updates", "text"), SCATTERS, ids=range(len(SCATTERS)))
def test_scatters(indices: tuple[int, ...], numbers: tuple[Any, ...], updates: tuple[int, ...], text: str) -> None:
    def scatter(x: Any, at: Any, new: Any) -> Any:
        return lax.scatter(x, at, new, lax.ScatterDimensionNumbers(*numbers))

    with pytest.raises(TypeError) as caught:
        polyax.eval_shape(scatter, _struct(OPERAND), _struct(indices), _struct(updates))
    assert text in str(caught.value)


def test_slices_of_an_empty_array_at_no_index() -> None:
    """What would not fit is never read."""
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    found = lax.gather(np.zeros((0,), np.float32), np.zeros((0, 1), np.int32), numbers, (1,))
    assert found.shape == (0,)


def test_starts_of_slices_have_one_dtype():
    x, update = np.ones((3, 4), np.float32), np.zeros((2, 2), np.float32)
    starts = (np.int32(1), np.int16(2))
    with pytest.raises(TypeError, match="index arguments to dynamic_slice must be integers of the same type"):
        lax.dynamic_slice(x, starts, (2, 2))
    with pytest.raises(TypeError, match="dynamic_update_slice must be integers of the same type, got: int32, int16"):
        lax.dynamic_update_slice(x, update, starts)
    mixed = polyax.vmap(lambda i: lax.dynamic_slice(x, (i, np.int32(0)), (2, 2)))
    with pytest.raises(TypeError, match="same type"):
        mixed(np.array([0, 1], np.int16))


def test_python_integers_take_the_dtype_of_the_other_starts():
    x = np.arange(12).reshape(3, 4)
    taken = polyax.jit(lambda i: lax.dynamic_slice(x, (i, 2), (2, 2)))(np.uint8(1))
    np.testing.assert_array_equal(taken, x[1:, 2:])


def test_indices_too_narrow_for_the_size_still_count_from_the_end() -> None:
    x = np.arange(200)
    ends = polyax.vmap(lambda i: lax.dynamic_slice(x, (i,), (1,)))(np.array([-3, 3], np.int8))
    assert ends.tolist() == [[197], [3]]
