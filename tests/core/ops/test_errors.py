"""Bad operands are refused where they are given, with JAX's error classes and texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax

X = np.ones((3, 4), np.float32)
V = np.ones(3, np.float32)
I = np.arange(3, dtype=np.int32)
ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
TO_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))

Row = tuple[Callable[[], Any], type[Exception], str]

ROWS_OF_ERRORS: list[Row] = [
    (lambda: lax.sin(I), TypeError, "sin does not accept dtype int32. Accepted dtypes are subtypes of floating"),
    (
        lambda: lax.add(V, I),
        TypeError,
        "lax.add requires arguments to have the same dtypes, got float32, int32. (Tip: ",
    ),
    (
        lambda: lax.add(V, np.ones(4, np.float32)),
        TypeError,
        "add got incompatible shapes for broadcasting: (3,), (4,).",
    ),
    (lambda: lax.add(V, X), TypeError, "add: arrays must have the same number of dimensions, got {1, 2}"),
    (lambda: lax.bitwise_and(V, V), TypeError, "and does not accept dtype float32 at position 0."),
    (lambda: lax.lt(X + 1j, X + 1j), TypeError, "lt does not accept dtype complex64 at position 0."),
    (lambda: lax.pow(I, V), TypeError, "pow does not accept dtype int32 at position 0."),
    (lambda: lax.integer_pow(I, -1), TypeError, "Integers cannot be raised to negative powers"),
    (
        lambda: lax.reduce_sum(X, (2,)),
        ValueError,
        "reduction axes (2,) contains out-of-bounds indices for float32[3,4].",
    ),
    (lambda: lax.reduce_max(X, (0, 0)), ValueError, "duplicate value in 'axes' of reduction: (0, 0)"),
    (lambda: lax.reduce_or(X, (0,)), TypeError, "logical reduction requires operand dtype bool or int, got float32."),
    (lambda: lax.argmax(X, 2, np.int32), ValueError, "Invalid axis 2 for operand shape (3, 4)"),
    (lambda: lax.argmax(X, 0, np.float32), TypeError, "index_dtype must be an integer type, but got float32"),
    (lambda: lax.argmin(X[:0], 0, np.int32), ValueError, "argmin and argmax require non-empty reduced dimension."),
    (
        lambda: lax.dot_general(X, X, (((1,), (0,)), ((), ()))),
        TypeError,
        "contracting dimensions to have the same shape",
    ),
    (
        lambda: lax.dot_general(X, X, (((5,), (0,)), ((), ()))),
        TypeError,
        "nonnegative and less than the number of axes",
    ),
    (lambda: lax.dot_general(X, X, (((1,), (1,)), ((1,), (1,)))), TypeError, "disjoint from contracting dimensions"),
    (lambda: lax.dot(X, X), ValueError, "dimension_numbers must be specified"),
    (lambda: lax.dot(X, X.T, precision="best"), ValueError, "Unsupported precision 'best'"),
    (lambda: lax.select(V > 0, V, I), TypeError, "lax.select requires arguments to have the same dtypes"),
    (lambda: lax.select(X > 0, V, V), TypeError, "select `which` must be scalar or have the same shape as cases"),
    (lambda: lax.select(V, V, V), TypeError, "select `which` must be boolean or integer type, got float32."),
    (lambda: lax.clamp(V, X, V), TypeError, "clamp requires min.shape == operand.shape or min.shape == ()"),
    (lambda: lax.concatenate([X, V], 0), TypeError, "Cannot concatenate arrays with different numbers of dimensions"),
    (lambda: lax.concatenate([X, X.T], 0), TypeError, "shapes that differ in dimensions other than the one"),
    (lambda: lax.concatenate([], 0), ValueError, "concatenate requires a non-empty sequences of arrays"),
    (lambda: lax.reshape(X, (5,)), TypeError, "reshape total size must be unchanged, got new_sizes (5,)"),
    (
        lambda: polyax.jit(lambda n: lax.reshape(X, (n, 3)))(4),
        TypeError,
        "Shapes must be 1D sequences of concrete values of integer type, got (Traced<",
    ),
    (lambda: lax.reshape(X, (4, 3), (0, 0)), TypeError, "reshape dimensions must be a permutation of operand dim"),
    (lambda: lax.broadcast_in_dim(X, (4,), (0, 1)), TypeError, "must have equal or higher rank to the operand shape"),
    (
        lambda: lax.broadcast_in_dim(V, (3, 4), (-1,)),
        TypeError,
        "broadcast_dimensions must have every element be nonneg",
    ),
    (lambda: lax.slice(V, (0,), (3,), (1, 1)), TypeError, "dimensions of the operand, got strides (1, 1) for operand"),
    (
        lambda: lax.conv_dimension_numbers(*((1, 2, 3),) * 2, ("NCHW", "OIH", "NCH")),
        TypeError,
        "len equal to the ndim of",
    ),
    (
        lambda: lax.conv_dimension_numbers(*((1, 2, 3),) * 2, ("NNH", "OIH", "NCH")),
        TypeError,
        "'N' and 'C' exactly once",
    ),
    (lambda: lax.transpose(X, (0,)), TypeError, "transpose permutation isn't a permutation of operand dimensions"),
    (lambda: lax.squeeze(X, (0,)), ValueError, "cannot select an axis to squeeze out which has size not equal to one"),
    (lambda: lax.squeeze(X, (5,)), ValueError, "axis 5 is out of bounds for array of dimension 2"),
    (
        lambda: lax.broadcast_in_dim(X, (3, 5), (0, 1)),
        TypeError,
        "operand dimension sizes must either be 1, or be equal",
    ),
    (
        lambda: lax.slice(X, (0, 0), (4, 4)),
        TypeError,
        "slice limit_indices must be less than or equal to operand shape",
    ),
    (lambda: lax.pad(X, np.int32(0), ((0, 0, 0),) * 2), TypeError, "pad operand and padding_value must be same dtype"),
    (lambda: lax.pad(X, 0.0, ((-5, 0, 0), (0, 0, 0))), ValueError, "Dimension size after padding is not at least 0"),
    (lambda: lax.rev(X, (0, 0)), TypeError, "rev dimensions must be unique, got (0, 0)."),
    (lambda: lax.iota(np.int32, -1), TypeError, "iota shape must have every element be nonnegative, got (-1,)."),
    (lambda: lax.iota(bool, 3), TypeError, "iota does not accept dtype bool."),
    (lambda: lax.full((2,), X), TypeError, "full must be called with scalar fill_value, got fill_value.shape (3, 4)."),
    (
        lambda: lax.split(X, (1, 3)),
        ValueError,
        "Sum of sizes 4 must be equal to dimension 0 of the operand shape [3, 4]",
    ),
    (
        lambda: lax.dynamic_slice(X, (0, 0), (5, 1)),
        TypeError,
        "slice slice_sizes must be less than or equal to operand",
    ),
    (
        lambda: lax.dynamic_slice(X, (0,), (5, 1)),
        ValueError,
        "Length of slice indices must match number of operand dim",
    ),
    (lambda: lax.dynamic_slice(X, (0.0, 0.0), (1, 1)), TypeError, "must be integers of the same type, got: float32"),
    (lambda: lax.dynamic_slice(X, (True, True), (1, 1)), TypeError, "must be integers of the same type, got: bool"),
    (lambda: lax.dynamic_slice(X, 1, (1, 1)), ValueError, "or an array of one dimension, got shape ()"),
    (lambda: lax.dynamic_update_slice(X, V, (0, 0)), TypeError, "dynamic_update_slice update must have the same rank"),
    (lambda: lax.gather(X, V[:, None], ROWS, (1, 4)), ValueError, "indices must have an integer type"),
    (lambda: lax.gather(X, I[:, None], ROWS, (2, 4)), TypeError, "Gather op can only collapse slice dims with bound 1"),
    (lambda: lax.gather(X, I[:, None], ROWS, (1, 9)), TypeError, "Slice size at index 1 in gather op is out of range"),
    (lambda: lax.gather(X, I[:, None], ROWS, (1, 4), mode="foo"), ValueError, 'Unknown gather mode "foo"'),
    (lambda: lax.scatter(X, I[:, None], V, TO_ROWS), TypeError, "Updates tensor must be of rank 2; got 1."),
    (lambda: lax.cumsum(X, 3), ValueError, "axis 3 is out of bounds for array of shape (3, 4)"),
    (lambda: lax.sort((X, V)), TypeError, "Arguments to sort must have equal shapes, got: (3, 4) (3,)"),
    (lambda: lax.top_k(X, 9), ValueError, "k argument to top_k must be no larger than size along axis; got k=9"),
    (lambda: lax.conv(X[None, None], X[None, None, None], (1, 1), "SAME"), TypeError, "lhs and rhs ndim to be equal"),
    (
        lambda: lax.conv_general_dilated(X[None, None], X[None, None], (1, 1), "SAME", lhs_dilation=(2, 1)),
        ValueError,
        "String padding is not implemented for transposed convolution using this op. Please either exactly specify",
    ),
    (lambda: lax.conv(X[None, None], X[None, None], (1, 1), "FOO"), RuntimeError, "Unrecognized padding type"),
    (lambda: lax.conv(X[None, None], X[None, None], (1, 1), (3, 3)), ValueError, "(low, high) pairs, got (3, 3)"),
    (lambda: lax.padtype_to_pads((3,), (2,), (1,), 3), TypeError, "Unknown padding type: 3."),
    (lambda: lax.rev(X, (-1,)), TypeError, "rev dimensions must have every element be nonnegative, got (-1,)."),
    (lambda: lax.fft(X, "fft", (5,)), ValueError, "minor dimensions must be equal to fft_lengths (5,)"),
    (lambda: lax.fft(X, "foo", (4,)), ValueError, "Unknown FFT type 'foo'"),
    (lambda: lax.linalg.cholesky_p.bind_all(X), ValueError, "must be a square matrix. Got shape (3, 4)"),
    (lambda: lax.linalg.triangular_solve(np.eye(3, dtype=np.float32), X), ValueError, "Incompatible shapes"),
    (lambda: lax.convert_element_type(V, None), ValueError, "dtype must be specified."),
    (lambda: lax.conj(I), TypeError, "conj does not accept dtype int32."),
    (lambda: lax.conj(V.astype("bfloat16")), TypeError, "subtypes of float32, float64, complexfloating."),
    (lambda: lax.complex(*(V.astype("float16"),) * 2), TypeError, "complex does not accept dtype float16 at position"),
    (lambda: lax.abs(I.astype("int4")), TypeError, "abs does not accept dtype int4."),
    (lambda: lax.abs(I.astype(np.uint8)), TypeError, "subtypes of floating, complexfloating, signedinteger."),
    (
        lambda: polyax.eval_shape(lambda x: lax.top_k(x, 2), polyax.ShapeDtypeStruct((2**31,), np.int8)),
        ValueError,
        "top_k returns int32 indices, which will overflow for array dimensions larger than the maximum int32",
    ),
    (lambda: lax.bitcast_convert_type(I.astype(np.int8), np.int32), ValueError, "from int8 of size 8 bits to int32"),
    (lambda: lax.bitcast_convert_type(np.ones(3, bool), np.float32), ValueError, "from bool of size 8 bits to float32"),
    (lambda: lax.bitcast_convert_type(np.ones(3, bool), np.int8), TypeError, "does not support bool or complex"),
]


@pytest.fixture(autouse=True)
def on_the_reference() -> Iterator[None]:
    with polyax.default_device(polyax.devices("reference")[0]):
        yield


@pytest.mark.parametrize(("call", "error", "text"), ROWS_OF_ERRORS, ids=[row[2][:40] for row in ROWS_OF_ERRORS])
def test_bad_operands(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
