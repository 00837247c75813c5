"""Donation: which arguments results take, which are kept with a warning, and who can't be donated."""

import warnings

import numpy as np
import pytest

import polyax
from polyax import numpy as jnp
from polyax.errors import JaxRuntimeError
from polyax.ir.aval import ShapedArray
from polyax.runtime.running.donation import fitting

UNUSABLE = r"Some donated buffers were not usable: {}\.\nNo result is as large.*#buffer-donation"


@pytest.fixture(autouse=True)
def no_other_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_each_result_takes_one_argument() -> None:
    ins = [ShapedArray((2, 3), np.dtype("f")), ShapedArray((3, 2), np.dtype("f")), ShapedArray((3, 2), np.dtype("f"))]
    assert fitting(ins, ins[1:2], (True, True, True)) == (False, True, False)
    assert fitting(ins, ins[:1] * 2, (True, True, True)) == (True, True, False)
    assert fitting(ins, ins, (False, True, False)) == (False, True, False)
    assert fitting(ins, [ShapedArray((6,), np.dtype("int32"))], (False, False, True)) == (False, False, True)
    assert fitting(ins, [ShapedArray((6,), np.dtype("int8"))], (False, False, True)) == (False, False, False)
    assert fitting(ins, [ShapedArray((5,), np.dtype("f"))], (True, True, True)) == (False, False, False)


def test_what_no_result_fits_stays_alive_with_a_warning() -> None:
    f = polyax.jit(lambda x, y, z: (x + 1, y.sum(), z.sum()), donate_argnums=(0, 1, 2))
    x, y, z = jnp.arange(4.0), jnp.arange(3), jnp.ones((2, 2), jnp.bfloat16)
    with pytest.warns(UserWarning, match=UNUSABLE.format(r"int32\[3\], bfloat16\[2,2\]")) as seen:
        f(x, y, z)
    assert seen[0].filename == __file__
    assert (x.is_deleted(), y.is_deleted(), z.is_deleted()) == (True, False, False)
    f(jnp.arange(4.0), y, z)  # said once for each program
    np.testing.assert_array_equal(y + 1, [1, 2, 3])


def test_results_of_another_shape_or_type_take_as_many_elements() -> None:
    for f in (lambda x: x.reshape(3, 2), lambda x: x.astype(jnp.int32)):
        x = jnp.ones((2, 3))
        polyax.jit(f, donate_argnums=0)(x)
        assert x.is_deleted()


def test_results_of_other_bytes_take_nothing_and_nobody_is_warned() -> None:
    for dtype in (jnp.float16, jnp.complex64, bool):
        x = jnp.ones((2, 3))
        polyax.jit(lambda x, dtype=dtype: x.astype(dtype), donate_argnums=0)(x)
        assert not x.is_deleted()


def test_what_the_program_does_not_read_stays_alive() -> None:
    x, y = jnp.arange(4.0), jnp.ones(4)
    polyax.jit(lambda x, y: y * 2, donate_argnums=0)(x, y)
    assert not x.is_deleted()


@pytest.mark.parametrize("ahead", [False, True])
def test_unused_arguments_that_are_kept_are_taken(ahead) -> None:
    f = polyax.jit(lambda x, y: y * 2, donate_argnums=0, keep_unused=True)
    x, y = jnp.arange(4.0), jnp.ones(4)
    call = f.lower(x, y).compile() if ahead else f
    assert call(x, y).tolist() == [2.0] * 4
    assert x.is_deleted() and not y.is_deleted()
    x = jnp.arange(3)
    with pytest.warns(UserWarning, match=UNUSABLE.format(r"int32\[3\]")):
        f(x, y)
    assert not x.is_deleted()
    constant = polyax.jit(lambda x: jnp.ones(4), donate_argnums=0, keep_unused=True)
    constant(x := jnp.arange(4.0))
    assert x.is_deleted()


@pytest.mark.parametrize(
    ("donated", "text"),
    [
        ((0, 1), r"donate the same buffer twice in Execute\(\) .*`f\(donate\(a\), donate\(a\)\)`"),
        ((0,), r"use a buffer that was previously donated in the same call .*`f\(donate\(a\), a\)`"),
        ((1,), r"donate a buffer which is also used by the same call .*`f\(a, donate\(a\)\)`"),
    ],
)
def test_an_array_is_donated_once_and_not_used_otherwise(donated, text) -> None:
    x = jnp.arange(4.0)
    with pytest.raises(JaxRuntimeError, match="INVALID_ARGUMENT: Attempt to " + text):
        polyax.jit(lambda x, y: (x + 1, y + 2), donate_argnums=donated)(x, x)
    assert not x.is_deleted()
    with pytest.raises(JaxRuntimeError, match="flattened argument 2, first use: 1"):
        polyax.jit(lambda c, t: [a + c for a in t], donate_argnums=1)(x, [y := x + 1, y])


def test_arrays_that_are_not_taken_may_come_twice() -> None:
    x = jnp.arange(4.0)
    with pytest.warns(UserWarning, match=UNUSABLE.format(r"float32\[4\]")):
        assert polyax.jit(lambda x, y: x.sum() + y.sum(), donate_argnums=0)(x, x) == 12
    assert polyax.jit(lambda x, y: x.sum() + y.sum())(x, x) == 12


def test_a_result_that_is_an_argument_outlives_it() -> None:
    """They may have one buffer, which is written over only when nobody else has it."""
    write = polyax.jit(lambda x: x.at[0].set(9.0), donate_argnums=0)
    for end in (polyax.Array.delete, write, lambda x: write(polyax.jit(lambda x: x, donate_argnums=0)(x))):
        x = jnp.arange(4.0) + 1
        same, (first, second) = polyax.jit(lambda x: x)(x), polyax.jit(lambda x: (x, x))(x)
        end(x)
        end(first)
        assert x.is_deleted() and first.is_deleted()
        assert same.tolist() == second.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_deleted_arrays_are_refused() -> None:
    x = jnp.arange(4.0)
    f = polyax.jit(lambda x: x + 1, donate_argnums=0)
    f(x)
    for use in (f, np.asarray, lambda x: x + 1, repr, polyax.grad(lambda x: (x * x).sum())):
        with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[4\]\."):
            use(x)
    assert x.shape == (4,) and x.dtype == jnp.float32 and x.nbytes == 16


def test_mapped_calls_donate_and_derivatives_do_not() -> None:
    f = polyax.jit(lambda x, y: (x + 1, y * 2), donate_argnums=(0, 1))
    x, y = jnp.ones((2, 4)), jnp.ones(4)
    polyax.vmap(f, in_axes=(0, None))(x, y)
    assert x.is_deleted() and y.is_deleted()
    x = jnp.ones(4)
    np.testing.assert_array_equal(polyax.grad(lambda x: polyax.jit(lambda x: x**3, donate_argnums=0)(x).sum())(x), 3)
    assert not x.is_deleted()


def test_pmap_takes_what_fits() -> None:
    x, y = jnp.ones((1, 4)), jnp.ones((1, 4))
    polyax.pmap(lambda x: x + 1, donate_argnums=0)(x)
    with pytest.warns(UserWarning, match=UNUSABLE.format(r"float32\[1,4\]")):
        polyax.pmap(lambda x: x.sum(), donate_argnums=0)(y)
    assert x.is_deleted() and not y.is_deleted()
    with pytest.raises(JaxRuntimeError, match="donate the same buffer twice"):
        polyax.pmap(lambda x, y: (x + 1, y + 2), donate_argnums=(0, 1))(y, y)
