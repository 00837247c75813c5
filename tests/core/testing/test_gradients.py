"""check_grads and its parts: right derivatives pass, wrong ones are told apart by mode, order, place and value."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.test_util import check_grads, check_jvp, check_vjp

X = np.array([0.5, 1.5], np.float32)


@pytest.fixture(autouse=True)
def on_the_reference():
    with polyax.default_device(polyax.devices("reference")[0]):
        yield


@polyax.custom_jvp
def wrong(x):
    return jnp.sin(x)


wrong.defjvp(lambda primals, tangents: (wrong(*primals), tangents[0] * jnp.cos(primals[0]) * jnp.array([1.0, 2.0])))


@polyax.custom_jvp
def wrong_later(x):
    return jnp.sin(x)


@polyax.custom_jvp
def wrong_slope(x):
    return jnp.cos(x)


wrong_later.defjvp(lambda primals, tangents: (wrong_later(*primals), tangents[0] * wrong_slope(*primals)))
wrong_slope.defjvp(lambda primals, tangents: (wrong_slope(*primals), tangents[0] * jnp.sin(*primals)))


def wrong_vjp():
    f = polyax.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x) * 3,))
    return f


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("lin",), ("fwd", "rev", "lin")])
def test_right_derivatives_pass(dtype, modes):
    with polyax.enable_x64(np.dtype(dtype).itemsize > 4 and dtype != np.complex64):
        check_grads(lambda x, y: jnp.sin(x) * y, (dtype(0.4), X.astype(dtype)), order=2, modes=modes)


def test_third_order():
    with polyax.enable_x64(True):
        check_grads(lambda x: jnp.exp(x) * x, (0.3,), order=3)


def test_pytrees_and_integers():
    def f(p, n):
        return {"y": p["a"] * p["b"][n], "n": n + 1, "kept": None}

    check_grads(f, ({"a": jnp.float32(2), "b": X}, np.int32(1)), order=2)


def test_half_precision():
    check_grads(lambda x: x * x, (jnp.array([0.5, 1.0], jnp.bfloat16),), order=1)


def test_wrong_forward_mode_shows_place_and_values():
    with pytest.raises(AssertionError) as caught:
        check_grads(wrong, (X,), order=1)
    text = str(caught.value)
    assert text.startswith("JVP (order 1): the tangent")
    tangent = np.random.default_rng(0).standard_normal(2).astype(np.float32)
    got, want = tangent[1] * np.cos(1.5) * 2, tangent[1] * np.cos(1.5)
    shown = re.search(r"1 of 2 elements differ, first at \(1,\): (\S+) instead of (\S+);", text)
    assert shown
    np.testing.assert_allclose([float(shown[1]), float(shown[2])], [got, want], rtol=1e-3)


def test_wrong_reverse_mode():
    with pytest.raises(AssertionError, match=r"^VJP \(order 1\): the cotangent projection"):
        check_grads(wrong_vjp(), (X,), order=1, modes=("rev",))


@pytest.mark.parametrize(
    ("modes", "chain"), [(("fwd",), "JVP of JVP"), (("rev",), "VJP of VJP"), (("fwd", "rev"), "JVP of JVP")]
)
def test_wrong_second_order(modes, chain):
    check_grads(wrong_later, (X,), order=1)
    with pytest.raises(AssertionError, match=rf"^{chain} \(order 2\)"):
        check_grads(wrong_later, (X,), order=2, modes=modes)


def test_tolerances_can_be_set():
    check_grads(wrong, (X,), order=1, modes=("fwd",), rtol=10.0)
    check_grads(wrong, (X,), order=1, modes=("fwd",), rtol={np.float32: 10.0})
    with pytest.raises(AssertionError):
        check_grads(wrong, (X,), order=1, modes=("fwd",), rtol={np.float64: 10.0})


def test_check_jvp_of_users_rules():
    args = (X.astype(np.float32),)
    check_jvp(jnp.sin, lambda ps, ts: (jnp.sin(*ps), jnp.cos(*ps) * ts[0]), args, eps=5e-3)
    with pytest.raises(AssertionError, match="mine: the tangent"):
        check_jvp(jnp.sin, lambda ps, ts: (jnp.sin(*ps), ts[0]), args, eps=5e-3, err_msg="mine")
    with pytest.raises(AssertionError, match="the primal"):
        check_jvp(jnp.sin, lambda ps, ts: (jnp.cos(*ps), ts[0]), args)
    with pytest.raises(AssertionError, match=r"the tangent has the type float32\[\], expected float32\[2\]"):
        check_jvp(jnp.sin, lambda ps, ts: (jnp.sin(*ps), jnp.sum(ts[0])), args)


def test_check_vjp_of_users_rules():
    check_vjp(jnp.sin, partial(polyax.vjp, jnp.sin), (X,), eps=5e-3)
    with pytest.raises(AssertionError, match="another structure"):
        check_vjp(jnp.sin, lambda x: (jnp.sin(x), lambda ct: [ct]), (X,))


def test_unknown_modes_and_orders():
    with pytest.raises(ValueError, match="modes fwd, rev, lin and orders from 1"):
        check_grads(jnp.sin, (X,), order=1, modes=("forward",))
    with pytest.raises(ValueError, match="orders from 1"):
        check_grads(jnp.sin, (X,), order=0)


def test_functions_get_arrays_for_those_of_numpy() -> None:
    check_grads(lambda x: x.at[1].mul(3.0), (np.ones(3, "float32"),), order=1)
