"""Whether results are committed to a device, and what that is worth. Run by ``test_sharded.py``."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from polyax.sharding import PartitionSpec as P

D = jax.devices()
ONES = np.ones(3, np.float32)
KINDS = ("here", "put here", "put there", "made there")

pytestmark = pytest.mark.skipif(len(D) < 2, reason="run by test_sharded.py, with several devices")


def array(kind):
    if kind == "made there":
        with jax.default_device(D[1]):
            return jnp.ones(3)
    return jnp.ones(3) if kind == "here" else jax.device_put(ONES, D[kind == "put there"])


def places(tree):
    """Of each array whether it is committed, and the numbers of its devices."""
    return [(x.committed, sorted(d.id for d in x.devices())) for x in jax.tree.leaves(tree)]


def expected(kinds):
    committed = {k == "put there" for k in kinds if k.startswith("put")}
    return (bool(committed), [int(committed == {True})])


CALLS = {
    "operator": lambda a, b: a + b,
    "jit": jax.jit(lambda a, b: a * b),
    "two results": jax.jit(lambda a, b: (a, a - b)),
    "library": lambda a, b: jnp.where(a > 0, a, b),
    "stack": lambda a, b: jnp.stack([a, b]),
    "primitive": lambda a, b: jax.lax.add_p.bind(a, b),
    "branch": lambda a, b: jax.lax.cond(True, jnp.add, jnp.subtract, a, b),
    "loop": lambda a, b: jax.lax.fori_loop(0, 3, lambda i, c: c + b, a),
    "derivative": lambda a, b: jax.grad(lambda x: (x * x * b).sum())(a),
    "map": lambda a, b: jax.vmap(jnp.multiply)(a, b),
    "linear algebra": lambda a, b: jnp.linalg.svd(a[:, None] * b),
    "callback": lambda a, b: jax.pure_callback(lambda x, y: x + y, a, a, b),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_where_somebody_put_an_argument(name):
    for one in KINDS:
        for other in KINDS:
            x, y = array(one), array(other)
            for _ in range(4):  # the usual way, then the quick one
                if {one, other} == {"put here", "put there"}:
                    with pytest.raises(ValueError, match=r"Received incompatible devices .* ids \[\d\]"):
                        CALLS[name](x, y)
                    continue
                found = places(CALLS[name](x, y))
                assert all(p == expected((one, other)) for p in found), (one, other, found)
            assert places([x, y]) == places([array(one), array(other)])


def test_the_default_device_is_asked_at_each_call():
    x, put, double = jnp.ones(3), jax.device_put(ONES, D[0]), jax.jit(lambda v: v * 2)
    for _ in range(4):
        for fun in (double, jnp.negative, lambda v: jax.lax.sin_p.bind(v), jax.jit(lambda v: jnp.arange(3.0))):
            assert places(fun(x)) == [(False, [0])]
            with jax.default_device(D[1]):
                assert places(fun(x)) == [(False, [1])]
                assert places(double(put)) == [(True, [0])]


def test_functions_that_name_a_device_commit_their_results():
    x, put, there = jnp.ones(3), jax.device_put(ONES, D[0]), SingleDeviceSharding(D[1])
    inc = lambda v: v + 1
    functions = jax.jit(inc, device=D[1]), jax.jit(inc, in_shardings=there)
    for _ in range(3):
        assert [places(f(v)) for f in functions for v in (x, put)] == [[(True, [1])]] * 4
        assert places(jax.jit(inc, out_shardings=there)(x)) == [(True, [1])]
    with pytest.raises(ValueError, match=r"argument v of .* ids \[0\] .* explicit output sharding with device ids \[1"):
        jax.jit(inc, out_shardings=there)(put)
    with pytest.raises(ValueError, match="Sharding passed to jit does not match the sharding on the respective arg"):
        line = jax.device_put(np.ones(4), NamedSharding(jax.make_mesh((2,), ("a",), devices=D[:2]), P("a")))
        jax.jit(inc, in_shardings=there)(line)


def test_compiled_programs_commit_as_their_example_did():
    x, put = jnp.ones(3), jax.device_put(ONES, D[1])
    free, fixed = (jax.jit(lambda v: v + 1).lower(v).compile() for v in (x, put))
    assert places([free(x), fixed(put), fixed(x)]) == [(False, [0]), (True, [1]), (True, [1])]
    with pytest.raises(ValueError, match="was compiled for"):
        free(put)


def test_what_is_closed_over_comes_along():
    put, here = jax.device_put(ONES, D[1]), jax.device_put(ONES, D[0])
    for x, where in ((jnp.ones(3), (False, [0])), (here, (True, [0])), (put, (True, [1]))):
        assert places(jax.jit(lambda v: (v + put, put))(x)) == [where] * 2


def test_device_put_leaves_the_original_as_it_was():
    x = jnp.ones(3)
    put = jax.device_put(x, D[0])
    assert places([x, put, jax.device_put(x), jax.device_put(put)]) == [(c, [0]) for c in (False, True, False, True)]
    assert jax.device_put(put, D[0]) is put and jax.device_put(x) is x
    double = jax.jit(lambda v: v * 2, donate_argnums=0)
    assert places(double(put)) == [(True, [0])] and put.is_deleted()
    np.testing.assert_array_equal(x, ONES)


def test_copies_rows_and_what_looks_alike():
    put = jax.device_put(ONES, D[1])
    made = [put.copy(), copy.copy(put), copy.deepcopy(put), jnp.array(put), jnp.asarray(put), *put, put[0], put.T]
    made += [jnp.zeros_like(put), jnp.full_like(put, 2), jax.lax.full_like(put, 2), *jnp.split(put, 3)]
    assert set(map(str, places(made))) == {"(True, [1])"}
    assert places([jnp.ones_like(array("made there")), *jnp.ones(2)]) == [(False, [0])] * 3
    line = jax.device_put(np.ones(4), NamedSharding(jax.make_mesh((2,), ("a",), devices=D[:2]), P("a")))
    assert jnp.zeros_like(line).sharding == line.sharding


def test_what_looks_alike_but_has_another_shape_or_a_weak_type():
    put = jax.device_put(ONES, D[1])
    assert places([jnp.zeros_like(put, shape=(2,)), jax.lax.full_like(put, 2, shape=())]) == [(True, [1])] * 2
    line = jax.device_put(np.ones(4), NamedSharding(jax.make_mesh((2,), ("a",), devices=D[:2]), P("a")))
    assert places([jnp.zeros_like(line, shape=(2,)), jnp.zeros_like(jax.device_put(1.0, D[1]))]) == [(False, [0])] * 2


def test_what_is_filled_where_somebody_says_is_not_weak():
    where = SingleDeviceSharding(D[1])
    made = [jax.lax.full((2,), 1.0, sharding=where), jnp.full((2,), 1, device=D[1]), jnp.zeros_like(1.0, device=D[1])]
    made += [jax.lax.full_like(jnp.asarray(1.0), 2.0, sharding=where)]
    assert places(made) == [(True, [1])] * 4 and not any(x.weak_type for x in made)


def test_both_a_device_and_a_backend():
    with pytest.raises(ValueError, match="can't specify both a device and a backend for jit"):
        jax.jit(lambda x: x, device=D[0], backend=D[0].platform)


@pytest.mark.parametrize("kind", KINDS[:3])
@pytest.mark.parametrize("target", [D[-1], SingleDeviceSharding(D[-1])])
def test_derivatives_through_other_devices(kind, target):
    """Cotangents go back to where values came from."""
    x = array(kind)
    f = lambda v: jnp.sin(jax.device_put(v * 2, target)) * 3
    out, slope = jax.value_and_grad(lambda v: f(v).sum())(x)
    assert places(out) == [(True, [D[-1].id])] and places(slope)[0][1] == [x.device.id]
    np.testing.assert_allclose(slope, 6 * np.cos(2 * ONES), 1e-6)
    assert places(jax.jvp(f, (x,), (x,))) == places(jax.vmap(f)(x)) * 2 == [(True, [D[-1].id])] * 2
    line = NamedSharding(Mesh(D[:2], "a"), P())
    assert places(jax.grad(lambda v: jax.device_put(v, line).sum())(x))[0][1] == [x.device.id]


def test_programs_stay_where_their_arguments_are():
    moved = jax.jit(lambda v: jax.device_put(v, D[1]) * 2)
    assert places([moved(array(kind)) for kind in KINDS[:3]]) == [(False, [0]), (True, [0]), (True, [1])]


def test_sequences_of_what_was_put_somewhere():
    put, line = jax.device_put(ONES, D[1]), NamedSharding(Mesh(D[:2], "a"), P())
    made = [jnp.array([put, ONES]), jnp.asarray([put[0], 2]), jnp.array([put.sum(), jnp.ones(())])]
    assert set(map(str, places(made))) == {"(True, [1])"} and places(jnp.array([jnp.ones(3)] * 2)) == [(False, [0])]
    np.testing.assert_array_equal(made[1], [1, 2])
    assert jnp.array([jax.device_put(ONES, line)] * 2).sharding.device_list == line.device_list


def test_names_of_arguments_in_errors():
    f = jax.jit(lambda first, second: first + second["x"])
    f(jnp.ones(3), {"x": jnp.ones(3)})
    with pytest.raises(ValueError, match=r"argument first of <lambda> with shape .*argument second\['x'\]"):
        f(array("put here"), {"x": array("put there")})
