"""Wrong uses of control flow: both sides of each mismatch, by name and type, at the user's line."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax

X = np.ones(3, np.float32)


def carry_dtype() -> object:
    return lax.scan(lambda c, x: (c.astype(jnp.int8), x), X, X)


def carry_shape() -> object:
    return lax.scan(lambda c, x: ({"a": c["a"][:2]}, x), {"a": X}, X)


def carry_structure() -> object:
    return lax.scan(lambda c, x: ({"b": c["a"]}, x), {"a": X}, X)


def no_pair() -> object:
    return lax.scan(lambda c, x: c, X, X)


def three() -> object:
    return lax.scan(lambda c, x: (c, c, c), X, X)


def sizes() -> object:
    return lax.scan(lambda c, x: (c, x), 1.0, {"p": X, "q": X[:2]})


def no_length() -> object:
    return lax.scan(lambda c, x: (c, x), 1.0, None)


def other_length() -> object:
    return lax.scan(lambda c, x: (c, x), 1.0, X, length=4)


def traced_length() -> object:
    return jax.jit(lambda n: lax.scan(lambda c, x: (c, x), 1.0, None, length=n))(4)


def scalar_xs() -> object:
    return lax.scan(lambda c, x: (c, x), 1.0, (X, 2.0))


def negative_unroll() -> object:
    return lax.scan(lambda c, x: (c, x), 1.0, X, unroll=-1)


def string_carry() -> object:
    return lax.scan(lambda c, x: (c, x), "a", X)


def string_result() -> object:
    return lax.scan(lambda c, x: (c, "a"), 1.0, X)


def integer_test() -> object:
    return lax.while_loop(lambda c: c, lambda c: c, 1)


def vector_test() -> object:
    return lax.while_loop(lambda c: c > 0, lambda c: c, X)


def tree_test() -> object:
    return lax.while_loop(lambda c: (c > 0,), lambda c: c, 1)


def while_type() -> object:
    return lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] * 1.5, c[1]), (np.int32(1), 2))


def while_gradient() -> object:
    return jax.grad(lambda x: lax.while_loop(lambda c: c < 3, lambda c: c * 2, x))(1.0)


def float_bounds() -> object:
    return lax.fori_loop(0.0, 5, lambda i, c: c, 1)


def other_bounds() -> object:
    return lax.fori_loop(np.int8(0), np.int16(5), lambda i, c: c, 1)


def unrolled_unknown() -> object:
    return jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 1, unroll=2))(3)


def branch_dtype() -> object:
    return lax.cond(True, lambda x: {"r": x}, lambda x: {"r": x.astype(int)}, 1.0)


def branch_shape() -> object:
    return lax.cond(True, lambda x: x[:2], lambda x: x, X)


def branch_structure() -> object:
    return lax.cond(True, lambda x: (x,), lambda x: x, 1.0)


def switch_dtype() -> object:
    return lax.switch(1, [lambda x: x, lambda x: x, lambda x: x > 0], 1.0)


def vector_predicate() -> object:
    return jax.jit(lambda p: lax.cond(p, lambda: 1, lambda: 2))(X)


def no_predicate() -> object:
    return lax.cond(None, lambda x: x, lambda x: x, 1.0)


def string_predicate() -> object:
    return lax.cond("yes", lambda: 1, lambda: 2)


def complex_predicate() -> object:
    return lax.cond(1j, lambda: 1, lambda: 2)


def float_index() -> object:
    return lax.switch(1.5, [lambda: 1, lambda: 2])


def no_branches() -> object:
    return lax.switch(1, [])


def no_function() -> object:
    return lax.cond(True, 1, lambda: 2)


def both_operands() -> object:
    return lax.cond(True, lambda x: x, lambda x: x, 1, operand=2)


def leaked() -> object:
    kept = []

    def body(c, x):
        kept.append(c * 2)
        return c, x

    lax.scan(body, 1.0, X)
    return kept[0] + 1


def prefix_sizes() -> object:
    return lax.associative_scan(lambda a, b: a, (X, X[:2]))


def prefix_axis() -> object:
    return lax.associative_scan(jnp.add, X, axis=3)


def prefix_structure() -> object:
    return lax.associative_scan(lambda a, b: (a, b), X)


def two_ways_to_give_operands() -> object:
    return lax.switch(0, [lambda x: x, lambda x: x], 1.0, operand=2.0)


def loop_index_as_int() -> object:
    return lax.fori_loop(0, 3, lambda i, c: c + [1, 2, 3][i], 0)


CASES: list[tuple[Callable[[], object], type[Exception], list[str]]] = [
    (
        carry_dtype,
        TypeError,
        ["The input carry c has type float32[3]", "output carry component has type int8[3]", "dtypes"],
    ),
    (carry_shape, TypeError, ["carry component c['a'] has type float32[3]", "has type float32[2]", "shapes"]),
    (carry_structure, TypeError, ["The input carry c is a", "('a',)", "('b',)", "Revise"]),
    (no_pair, TypeError, ["scan body output must be a pair, got float32[3]."]),
    (three, TypeError, ["scan body output must be a pair", "(ShapedArray(float32[3]),"]),
    (sizes, ValueError, ["different leading axis sizes: 3, 2", "xs['p'] is float32[3]", "xs['q'] is float32[2]"]),
    (no_length, ValueError, ["scan got no values to scan over and `length` not provided"]),
    (other_length, ValueError, ["`length` argument of 4", "leading axis sizes [3]"]),
    (traced_length, jax.errors.ConcretizationTypeError, ["`length`", "concrete `int`", "while_loop", "argument n"]),
    (scalar_xs, ValueError, ["no leading axis to scan over", "xs[1] is float32[]"]),
    (negative_unroll, ValueError, ["`unroll` must be a `bool` or a non-negative `int`, got -1"]),
    (string_carry, TypeError, ["'a'", "is not a valid JAX type"]),
    (string_result, TypeError, ["traced for scan returned a value of type <class 'str'>"]),
    (integer_test, TypeError, ["must return a boolean scalar", "int32[]"]),
    (vector_test, TypeError, ["must return a boolean scalar", "bool[3]"]),
    (tree_test, TypeError, ["must return a boolean scalar", "(*,)"]),
    (while_type, TypeError, ["The input carry component c[0] has type int32[]", "has type float32[]"]),
    (while_gradient, ValueError, ["Reverse-mode differentiation does not work for lax.while_loop", "lax.scan"]),
    (float_bounds, TypeError, ["must have equal types, got float32 and int32"]),
    (two_ways_to_give_operands, TypeError, ["no positional operands can be passed", "operand=2.0", "(1.0,)"]),
    (loop_index_as_int, jax.errors.TracerIntegerConversionError, ["<lambda> at ", "for fori_loop"]),
    (other_bounds, TypeError, ["must have equal types, got int8 and int16"]),
    (unrolled_unknown, ValueError, ["`unroll`", "statically known"]),
    (
        branch_dtype,
        TypeError,
        ["The output of true_fun at path ['r'] has type float32[]", "of false_fun has type int32[]"],
    ),
    (branch_shape, TypeError, ["float32[2]", "float32[3]", "shapes do not match"]),
    (
        branch_structure,
        TypeError,
        ["same pytree structure", "true_fun output is a <class 'tuple'> but false_fun output is a pytree leaf"],
    ),
    (switch_dtype, TypeError, ["branch 0", "float32[]", "branch2 is <lambda> at ", "bool[]"]),
    (vector_predicate, TypeError, ["Pred must be a scalar, got Traced", "of shape (3,)"]),
    (no_predicate, TypeError, ["cond predicate is None"]),
    (string_predicate, TypeError, ["Pred must be a scalar, got yes of type <class 'str'>"]),
    (complex_predicate, TypeError, ["Pred type must be either boolean or number, got complex64"]),
    (float_index, TypeError, ["Index type must be an integer, got 1.5 as float32"]),
    (no_branches, ValueError, ["Empty branch sequence"]),
    (no_function, TypeError, ["lax.cond: true_fun and false_fun arguments should be callable."]),
    (both_operands, TypeError, ["'operand'"]),
    (leaked, jax.errors.UnexpectedTracerError, ["float32[]", "body"]),
    (prefix_sizes, ValueError, ["elems[0] is float32[3]", "elems[1] is float32[2]"]),
    (prefix_axis, ValueError, ["axis 3 is out of bounds for array of dimension 1"]),
    (prefix_structure, TypeError, ["must keep the structure", "(*, *)"]),
]


@pytest.mark.parametrize("case, error, said", CASES, ids=[c[0].__name__ for c in CASES])
def test_says_both_sides_at_the_users_line(case: Callable[[], object], error: type[Exception], said: list[str]) -> None:
    with pytest.raises(error) as caught:
        case()
    for text in said:
        assert text in str(caught.value)
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert frame.filename == __file__, f"ends in {frame.filename}:{frame.lineno}"


def test_a_pair_may_be_a_list():
    carry, ys = lax.scan(lambda c, x: [c + x, c], 0.0, np.arange(3, dtype=np.float32))
    assert carry == 3 and ys.tolist() == [0, 0, 1]


def test_bounds_that_the_type_of_integers_cannot_hold():
    with pytest.raises(OverflowError, match="bound 1099511627776 is too large for int32"):
        lax.fori_loop(0, 2**40, lambda i, x: x, 0.0)
