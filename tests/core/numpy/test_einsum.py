"""Einsum of booleans and of narrow numbers, and paths that can't be taken."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax

TRUTHS = np.array([[True, False, True], [False, False, False], [False, True, True]])


@pytest.mark.parametrize("subscripts", ["ij->", "ij->j", "ii->i", "ii", "ij,jk->ik", "ij,jk,kl->il"])
def test_sums_of_products_of_booleans_say_whether_any_is_true(subscripts):
    operands = [TRUTHS] * (1 + subscripts.count(","))
    got = jnp.einsum(subscripts, *operands)
    assert got.dtype == bool
    np.testing.assert_array_equal(got, np.einsum(subscripts, *[x.astype(int) for x in operands]) > 0)


def test_narrow_numbers_are_added_up_in_the_preferred_dtype():
    many = jnp.full((20, 30), 100, jnp.int8)
    assert jnp.einsum("ij->", many, preferred_element_type=jnp.int32) == 60000
    program = str(polyax.make_jaxpr(lambda x: jnp.einsum("ij->i", x, preferred_element_type="float32"))(many))
    assert program.index("convert_element_type") < program.index("reduce_sum")


@pytest.mark.parametrize(
    "path, error, text",
    [
        ([(0, 1, 2)], NotImplementedError, "3 or more operands"),
        (["einsum_path", (0, 1), (0, 1)], TypeError, "integer"),
        (7, TypeError, "not iterable"),
        ([(0, 3), (0, 1)], IndexError, "index"),
    ],
)
def test_paths_that_cannot_be_taken(path, error, text):
    with pytest.raises(error, match=text):
        jnp.einsum("i,j,k->ijk", *[np.ones(2)] * 3, optimize=path)


def test_a_path_says_which_operands_meet():
    a, b, c = np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5))
    assert jnp.einsum("ij,jk,kl->il", a, b, c, optimize=[(1, 2), (0, 1)])[0, 0] == 12


def test_there_are_operands():
    with pytest.raises(ValueError, match="number of operands, 0"):
        jnp.einsum("i,j")


BAD = {
    "ij": "does not contain the correct number of indices for operand 0",
    "i,i": "Number of einsum subscripts, 2, must be equal to the number of operands, 1",
    "i->j": "Output character 'j' did not appear in the input",
    "i->ii": "Output character 'i' appeared more than once in the output",
    "i->i->": "can only contain one '->'",
}


@pytest.mark.parametrize("subscripts", BAD)
def test_what_is_wrong_with_subscripts(subscripts):
    with pytest.raises(ValueError, match=BAD[subscripts]):
        jnp.einsum(subscripts, jnp.ones(3))


@pytest.mark.parametrize("labels", [("x", "y", "z"), ("z", "y", "a"), (-1, -2, -3), (100, 200, 300)])
def test_dimensions_have_labels_of_any_kind(labels: tuple[object, object, object]) -> None:
    i, j, k = labels
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(jnp.einsum(a, [i, j], b, [j, k], [k, i]), (a @ b).T)
    implicit = jnp.einsum(a, [i, j], b, [j, k])
    np.testing.assert_array_equal(implicit, a @ b if sorted(labels).index(i) < sorted(labels).index(k) else (a @ b).T)
    np.testing.assert_array_equal(jnp.einsum(a, [..., j], b, [j, k], [..., k]), a @ b)


def test_labels_that_cannot_be_letters() -> None:
    with pytest.raises(KeyError, match=r"Label 7 of the result is not one of the operands', which have \[0, 1\]"):
        jnp.einsum(jnp.ones((2, 3)), [0, 1], [0, 7])
    with pytest.raises(ValueError, match="at most 52 labels, got 54"):
        jnp.einsum(*[part for n in range(27) for part in (jnp.ones((1, 1)), [2 * n, 2 * n + 1])])


def test_labels_are_of_one_kind() -> None:
    with pytest.raises(TypeError, match="comparable"):
        jnp.einsum(np.ones((2, 3)), ["x", 1], np.ones((3, 4)), [1, "z"])


@pytest.mark.parametrize(("asked", "told"), [(None, "float16"), ("float32", "float32")])
def test_products_of_the_user_are_told_a_type(asked: object, told: str) -> None:
    heard = []

    def multiply(x, y, numbers, how, preferred_element_type):
        heard.append((how, preferred_element_type))
        return lax.dot_general(x, y, numbers, preferred_element_type=preferred_element_type)

    x = jnp.ones((2, 3), "float16")
    out = jnp.einsum("ij,kj->ik", x, x, precision="highest", preferred_element_type=asked, _dot_general=multiply)
    assert heard == [("highest", told)] and out.dtype == told and out.tolist() == [[3, 3], [3, 3]]
