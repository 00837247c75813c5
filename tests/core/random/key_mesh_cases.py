"""Typed keys on several devices, against the same keys on one. Run by ``test_typed_keys.py``."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax, random
from polyax.sharding import AxisType, NamedSharding
from polyax.sharding import PartitionSpec as P

N = len(polyax.devices())
pytestmark = pytest.mark.skipif(N < 8, reason="run by test_typed_keys.py, with eight devices")

MESH = polyax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2) if N >= 8 else None
EXPLICIT = polyax.make_mesh((8,), ("e",), axis_types=(AxisType.Explicit,)) if N >= 8 else None
KEYS = random.split(random.key(0), 8)
WORDS = np.asarray(random.key_data(KEYS))
NORMALS = np.asarray(polyax.vmap(random.normal)(WORDS))


def on(spec):
    return NamedSharding(MESH, spec)


@pytest.fixture
def cut():
    return polyax.device_put(KEYS, on(P("x")))


def same(got, expected):
    got = random.key_data(got) if str(got.dtype) == "key<fry>" else got
    if expected.dtype == np.uint32:
        np.testing.assert_array_equal(np.asarray(got), expected, strict=True)
    else:
        np.testing.assert_allclose(np.asarray(got), expected, 1e-6, 1e-6, strict=True)


def test_parts(cut):
    assert cut.sharding == on(P("x")) and str(cut.aval) == "key<fry>[8]"
    shard = cut.addressable_shards[2]
    assert shard.data.dtype is KEYS.dtype
    same(shard.data, WORDS[shard.index])
    same(cut, WORDS)
    same(cut[3], WORDS[3])
    for row, words in zip(cut, WORDS, strict=True):
        same(row, words)
    assert repr(cut) == repr(KEYS)


def test_moved(cut):
    for target in (on(P("y")), on(P(("y", "x"))), on(P()), polyax.devices()[3]):
        same(polyax.device_put(cut, target), WORDS)
    same(polyax.make_array_from_callback((8,), on(P("x")), lambda index: KEYS[index]), WORDS)
    assert random.key_data(cut).sharding.is_equivalent_to(on(P("x")), 2)
    wrapped = random.wrap_key_data(polyax.device_put(WORDS, on(P("x", "y"))))
    same(wrapped, WORDS)
    assert wrapped.dtype is KEYS.dtype


@pytest.mark.parametrize(
    "fun",
    [
        polyax.vmap(lambda k: random.normal(k, (3,))),
        polyax.vmap(lambda k: random.split(k, 3)),
        polyax.vmap(random.fold_in, (0, None)),
        lambda keys: keys[::-1],
        lambda keys: jnp.concatenate([keys, keys[:4]]),
        lambda keys: keys.reshape(2, 4).T,
        lambda keys: jnp.where(jnp.arange(8) < 3, keys, keys[0]),
        lambda keys: keys == keys[2],
        lambda keys: lax.scan(lambda c, k: (c + random.normal(k), random.split(k)), 0.0, keys)[1],
        lambda keys: lax.scan(lambda k, _: (k[::-1], polyax.vmap(random.bits)(k)), keys, None, length=2)[1],
        lambda keys: lax.cond(random.bits(keys[0]) > 7, lambda k: k[::-1], lambda k: k, keys),
        lambda keys: random.split(keys[1], 8),
        lambda keys: polyax.grad(polyax.checkpoint(lambda x: (x * polyax.vmap(random.normal)(keys)).sum()))(
            jnp.ones(8)
        ),
    ],
)
def test_jitted(fun, cut):
    fun = (lambda f: lambda keys: f(keys, 5))(fun) if "fold_in" in str(getattr(fun, "__wrapped__", "")) else fun
    expected = polyax.jit(fun)(KEYS)
    for where in (None, on(P("y")) if expected.shape[0] % 2 == 0 else None, on(P())):
        got = polyax.jit(fun, out_shardings=where)(cut)
        assert polyax.tree.map(str, got.aval) == str(expected.aval)
        same(got, np.asarray(random.key_data(expected) if str(expected.dtype) == "key<fry>" else expected))


def test_nothing_moves_between_keys_of_different_devices(cut):
    program = polyax.jit(polyax.vmap(lambda k: random.normal(random.split(k)[0], (5,))))
    made = program(cut)
    assert made.sharding.is_equivalent_to(on(P("x")), 2)
    assert made.addressable_shards[0].data.shape == (2, 5)


def test_constraints_and_constants(cut):
    made = polyax.jit(lambda k: lax.with_sharding_constraint(random.split(k, 8), on(P("y"))))(random.key(0))
    assert made.sharding.is_equivalent_to(on(P("y")), 1)
    same(made, WORDS)
    same(polyax.jit(lambda x: x * polyax.vmap(random.normal)(cut))(jnp.ones(8)), NORMALS)
    same(polyax.jit(lambda k: k[::-1], donate_argnums=0)(polyax.device_put(KEYS, on(P("x")))), WORDS[::-1])


@pytest.mark.parametrize("jitted", [False, True])
def test_regions(jitted, cut):
    def run(fun, ins, outs, *args, **options):
        mapped = polyax.shard_map(fun, mesh=MESH, in_specs=ins, out_specs=outs, **options)
        return (polyax.jit(mapped) if jitted else mapped)(*args)

    same(run(polyax.vmap(random.normal), P("x"), P("x"), cut), NORMALS)
    ring = [(i, (i + 1) % 4) for i in range(4)]
    same(run(lambda k: lax.ppermute(k, "x", ring), P("x"), P("x"), cut), np.roll(WORDS, 2, 0))
    same(run(lambda k: lax.all_gather(k, "x", tiled=True), P("x"), P(), cut, check_vma=False), WORDS)
    square = run(
        lambda k: lax.all_to_all(k, "x", 1, 0, tiled=True), P("x"), P(None, "x"), KEYS.reshape(4, 2)[:, [0, 1, 0, 1]]
    )
    same(square, WORDS.reshape(4, 2, 2)[:, [0, 1, 0, 1]])
    own = run(lambda k: random.fold_in(k[0], lax.axis_index("x"))[None], P(), P("x"), KEYS)
    same(own, np.stack([random.key_data(random.fold_in(KEYS[0], n)) for n in range(4)]))
    same(
        run(lambda k: random.split(k[0]), P("x"), P("x"), cut),
        np.asarray(random.key_data(polyax.vmap(random.split)(KEYS[::2]).ravel())),
    )


def test_pmap():
    same(polyax.pmap(random.normal)(KEYS), NORMALS)
    made = polyax.pmap(random.split)(KEYS)
    same(made, np.asarray(random.key_data(polyax.vmap(random.split)(KEYS))))
    same(polyax.pmap(lambda k: lax.all_gather(k, "i"), "i", out_axes=None)(KEYS), WORDS)


def test_explicit_axes():
    with polyax.set_mesh(EXPLICIT):
        keys = polyax.device_put(KEYS, NamedSharding(EXPLICIT, P("e")))
        assert str(keys.aval) == "key<fry>[8@e]"
        assert str(polyax.jit(polyax.vmap(lambda k: random.normal(k, (2,))))(keys).aval) == "float32[8@e,2]"
        assert str(polyax.jit(polyax.vmap(random.split))(keys).aval) == "key<fry>[8@e,2]"
        assert str(random.key_data(keys).aval) == "uint32[8@e,2]"
        same(polyax.jit(lambda k: jnp.expand_dims(k, 0)[0][::-1])(keys), WORDS[::-1])
