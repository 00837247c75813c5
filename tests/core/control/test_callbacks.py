"""Python functions called from programs: when, how often, with what, and what happens to their errors."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.ad_checkpoint import checkpoint_name
from polyax.control.callback import debug_callback
from polyax.errors import JaxRuntimeError
from polyax.experimental import io_callback
from polyax_conformance.specs.callbacks import SCALAR, Log, X, double, pure


@pytest.fixture
def log():
    return Log()


# --- values


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"])
def test_mapped(method):
    got = polyax.vmap(lambda x: pure(x, method))(np.stack([X, X + 1]))
    np.testing.assert_array_equal(got, 2 * np.stack([X, X + 1]))


def test_mapping_needs_a_method():
    with pytest.raises(
        NotImplementedError, match="vmap is only supported for the pure_callback primitive when vmap_method is one of"
    ):
        polyax.vmap(lambda x: polyax.pure_callback(double, SCALAR, x))(X)
    with pytest.raises(ValueError, match="vmap_method must be one of the allowed methods .*but got: "):
        polyax.pure_callback(double, SCALAR, 1.0, vmap_method="fast")
    with pytest.raises(ValueError, match="Cannot `vmap` ordered IO callback"):
        polyax.vmap(lambda x: io_callback(double, SCALAR, x, ordered=True))(X)


def test_pytrees_and_keyword_arguments():
    shapes = {"a": SCALAR, "b": [polyax.ShapeDtypeStruct((2,), np.int32)]}

    def host(x, *, y):
        return {"a": x["u"] + y, "b": [np.array([1, 2], np.int32)]}

    out = polyax.jit(lambda u, y: polyax.pure_callback(host, shapes, {"u": u}, y=y))(1.0, 2.0)
    assert float(out["a"]) == 3 and out["b"][0].tolist() == [1, 2]


# --- when and how often


def test_pure_ones_without_use_are_not_called(log):
    polyax.jit(lambda x: (polyax.pure_callback(log.number, SCALAR, x), x)[1])(1.0)
    polyax.jit(lambda x: (io_callback(log.number, SCALAR, x), x)[1])(2.0)
    assert log.take() == [2]


def test_order(log):
    def f(x):
        for n in range(20):
            polyax.debug.callback(log, x + n, ordered=True)
        return x

    polyax.jit(f)(np.float32(0))
    assert log.take() == list(range(20))
    polyax.jit(lambda x: lax.fori_loop(0, 5, lambda n, c: (io_callback(log, None, n, ordered=True), c)[1], x))(1.0)
    assert log.take() == [0, 1, 2, 3, 4]


def f_logged(log, x):
    polyax.debug.callback(log, x)
    return jnp.sin(x) * x


def test_under_transformations_the_original_values_are_seen_once(log):
    f = lambda x: f_logged(log, x)
    for g in (f, polyax.jit(f), polyax.grad(f), polyax.jit(polyax.grad(f)), lambda x: polyax.jvp(f, (x,), (1.0,))):
        g(0.5)
        assert log.take() == [0.5]
    polyax.vmap(f)(X)
    assert log.take() == [0, 1, 2, 3]
    polyax.grad(polyax.checkpoint(f))(0.5)
    assert set(log.take()) == {0.5}  # and perhaps again, where it is computed again
    lax.scan(lambda c, x: (c, f(x)), 0, X)
    assert sorted(log.take()) == [0, 1, 2, 3]


@pytest.mark.parametrize("ordered", [True, False])
def test_mapped_branches_all_show_their_values(ordered):
    def show(x):
        polyax.debug.callback(lambda v: seen.append(v.item()), x, ordered=ordered)
        return x * 2

    seen = []
    f = polyax.vmap(lambda p, x: lax.cond(p, show, lambda x: x, x))
    for g in (f, polyax.jit(f)):
        assert g(np.array([True, False]), np.float32([3, 4])).tolist() == [6.0, 4.0]
    polyax.effects_barrier()
    assert sorted(seen) == [3.0, 3.0, 4.0, 4.0]
    with pytest.raises(NotImplementedError, match=r"^IO effect not supported in vmap-of-cond.*: \{IO\}"):
        polyax.vmap(lambda p: lax.cond(p, lambda: io_callback(double, SCALAR, 1.0), lambda: 1.0))(np.array([True]))


def test_mapped_loops_refuse_what_would_be_called_for_examples_that_are_done():
    def loop(start):
        return lax.while_loop(lambda x: x < 8.0, lambda x: io_callback(double, SCALAR, x), start)

    with pytest.raises(NotImplementedError, match="^Unordered IO effects not supported in while_loop"):
        polyax.vmap(loop)(np.float32([1, 4]))
    calls = polyax.vmap(lambda x: lax.fori_loop(0, 2, lambda _, x: io_callback(double, SCALAR, x), x))
    assert calls(np.float32([1, 4])).tolist() == [4.0, 16.0]


@pytest.mark.parametrize("ordered", [True, False])
def test_what_is_computed_again_is_shown_again(ordered, capsys):
    def f(x):
        y = checkpoint_name(x + 1.0, "y")
        z = checkpoint_name(y * 2.0, "z")
        polyax.debug.print("{} {}", y, z, ordered=ordered)
        return jnp.exp(z)

    def all_but(*names):
        return lambda prim, *_, **params: prim.name != "name" or params["name"] not in names

    saves = polyax.checkpoint_policies
    policies = {
        None: 2,
        saves.nothing_saveable: 2,
        saves.save_any_names_but_these("z"): 2,
        saves.everything_saveable: 1,
        all_but("y"): 1,
        all_but("y", "z"): 2,
    }
    for policy, times in policies.items():
        polyax.grad(polyax.checkpoint(f, policy=policy))(2.0)
        polyax.effects_barrier()
        assert capsys.readouterr().out == "3.0 6.0\n" * times


def test_no_transposes():
    for call, told in ((polyax.pure_callback, "Pure"), (io_callback, "IO")):
        with pytest.raises(ValueError, match=f"{told} callbacks do not support transpose"):
            polyax.linear_transpose(lambda x, call=call: call(double, SCALAR, x), np.float32(1))(np.float32(1))


def test_no_derivatives():
    with pytest.raises(ValueError, match="Pure callbacks do not support JVP"):
        polyax.grad(lambda x: pure(x))(jnp.float32(1))
    with pytest.raises(ValueError, match="IO callbacks do not support JVP"):
        polyax.grad(lambda x: io_callback(double, SCALAR, x))(jnp.float32(1))


def test_custom_derivatives_of_callbacks():
    @polyax.custom_jvp
    def f(x):
        return pure(x)

    f.defjvp(lambda primals, tangents: (f(*primals), 2 * tangents[0]))
    assert float(polyax.jit(polyax.grad(lambda x: f(x) * x))(jnp.float32(3))) == 12


# --- errors


def wrong_shape(_):
    return np.zeros(3, np.float32)


def wrong_dtype(_):
    return np.zeros((), np.int8)


def wrong_structure(_):
    return (np.float32(0), np.float32(1))


def failing(_):
    raise LookupError("no such thing")


BAD = {
    wrong_shape: (
        RuntimeError,
        r"shape for return value #0: Expected: \(\), Actual: \(3,\)\. .* wrong_shape returned .*float32\[3\]",
    ),
    wrong_dtype: (
        RuntimeError,
        r"Incorrect output dtype for return value #0: Expected: float32, Actual: int8\. .*int8\[\]",
    ),
    wrong_structure: (RuntimeError, r"Mismatched number of outputs .*Expected: 1, Actual: 2: wrong_structure"),
    failing: (RuntimeError, "error calling callback: LookupError: no such thing"),
}


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("callback", BAD)
def test_errors_surface_and_name_the_line(callback, jit):
    error, message = BAD[callback]
    f = lambda x: polyax.pure_callback(callback, SCALAR, x)
    with pytest.raises(error, match=message) as caught:
        (polyax.jit(f) if jit else f)(1.0).block_until_ready()
    assert any(f"in the callback {callback.__name__}, asked for at {__file__}" in n for n in caught.value.__notes__)


def test_errors_of_callbacks_are_their_causes():
    with pytest.raises(JaxRuntimeError) as caught:
        io_callback(failing, SCALAR, 1.0)
    assert isinstance(caught.value.__cause__, LookupError)


@pytest.mark.parametrize("jit, error", [(False, LookupError), (True, JaxRuntimeError)])
def test_debugging_outside_of_programs_raises_what_it_raises(jit, error):
    f = lambda x: polyax.debug.callback(failing, x)
    with pytest.raises(error, match="no such thing"):
        (polyax.jit(f) if jit else f)(1.0)
        polyax.effects_barrier()


def test_errors_that_a_result_showed_are_not_told_again():
    def f(x):
        y = lax.fori_loop(0, 50, lambda _, v: jnp.sin(v @ v), x)
        return y + io_callback(failing, SCALAR, y[0, 0])

    with pytest.raises(JaxRuntimeError):
        polyax.jit(f)(np.ones((200, 200), np.float32)).block_until_ready()
    polyax.effects_barrier()


def test_bad_announcements():
    with pytest.raises(TypeError, match="result_shape_dtypes must hold things with a shape and a dtype"):
        polyax.pure_callback(double, "float", 1.0)
    with pytest.raises(TypeError, match="Expected a callable"):
        polyax.pure_callback(3, SCALAR, 1.0)


# --- what they may do


def test_callbacks_own_what_they_get():
    kept = []
    polyax.jit(lambda x: debug_callback(kept.append, x * 2))(X)
    polyax.effects_barrier()
    kept[0][:] = 7  # writable, and nobody else's
    np.testing.assert_array_equal(polyax.jit(lambda x: x * 2)(X), 2 * X)


# --- as text


def test_programs_read_as_in_jax():
    def f(x):
        polyax.debug.print("x {}", x)
        polyax.debug.callback(double, x, ordered=True)
        return pure(x) + io_callback(double, SCALAR, x)

    text = " ".join(str(polyax.make_jaxpr(f)(jnp.float32(1))).split())
    assert "debug_print[fmt=x {} ordered=False partitioned=False] a" in text
    assert "effect=OrderedDebug partitioned=False ] a" in text
    assert "sharding=None vmap_method=sequential ] a" in text
    assert "ordered=False result_avals=(ShapedArray(float32[]),) sharding=None ] a" in text


def test_results_are_counted_not_compared_in_structure():
    two = (SCALAR, SCALAR)
    x, y = polyax.pure_callback(lambda x: [x, np.float32(2)], two, 1.0)
    assert (float(x), float(y)) == (1.0, 2.0)
    assert float(polyax.pure_callback(lambda x: {"b": x}, {"a": SCALAR}, 1.0)["a"]) == 1.0
    assert io_callback(lambda x: None, (), 1.0) == ()


def test_announced_types_exist():
    for wide in (np.zeros(()), polyax.ShapeDtypeStruct((), np.int64)):
        for call in (polyax.pure_callback, io_callback):
            with pytest.raises(ValueError, match="result_shape_dtypes cannot specify 64-bit types when"):
                call(lambda x: x, wide, 1.0)
        with polyax.enable_x64(True):
            assert polyax.pure_callback(lambda x, to=wide.dtype: np.asarray(x, to), wide, 1.0).dtype == wide.dtype


def test_callbacks_run_nowhere_else():
    where = polyax.sharding.SingleDeviceSharding(polyax.devices()[0])
    assert float(polyax.pure_callback(lambda x: x, SCALAR, np.float32(1), sharding=where)) == 1.0
    with pytest.raises(
        NotImplementedError, match="pure_callback only supports SingleDeviceSharding, but got <class 'int'>"
    ):
        polyax.pure_callback(lambda x: x, SCALAR, 1.0, sharding=3)
