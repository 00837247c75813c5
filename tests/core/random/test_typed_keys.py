"""Typed keys: programs on them give what the same programs on words give, in every transformation."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import dtypes, lax, random
from polyax import numpy as jnp
from polyax.control.elaboration import elaborated
from support import process

with polyax.default_device(polyax.devices("reference")[0]):
    KEY = random.key(5)
    KEYS = random.split(KEY, 4)
X = np.float32(1.5)


def words(tree: Any) -> Any:
    """NumPy arrays; typed keys as their words."""
    leaf = lambda x: np.asarray(random.key_data(x) if dtypes.issubdtype(x.dtype, dtypes.prng_key) else x)
    return polyax.tree.map(leaf, tree)


def check_same(got: Any, expected: Any) -> None:
    polyax.tree.map(_check_leaf, words(got), words(expected))


def _check_leaf(got: np.ndarray, expected: np.ndarray) -> None:
    """Integers are equal; of floats, the last bit depends on how operations are fused."""
    assert got.dtype == expected.dtype
    tolerance = 0.0 if got.dtype.kind in "biu" else 1e-6 if got.dtype.itemsize > 2 else 1e-2
    np.testing.assert_allclose(got.astype(complex), expected.astype(complex), tolerance, tolerance)


SAMPLERS: dict[str, Callable[[Any], Any]] = {
    "bits": lambda k: [random.bits(k, (3,), f"uint{n}") for n in (8, 16, 32)],
    "uniform": lambda k: random.uniform(k, (2, 3), minval=-1.0),
    "normal": lambda k: (random.normal(k, (3,)), random.normal(k, (), "bfloat16"), random.normal(k, (2,), "complex64")),
    "truncated_normal": lambda k: random.truncated_normal(k, -1.0, 1.0, (3,)),
    "multivariate_normal": lambda k: random.multivariate_normal(k, jnp.zeros(2), jnp.eye(2), (3,)),
    "randint": lambda k: (random.randint(k, (5,), 0, 100), random.randint(k, (5,), 0, 100, "int8")),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, (5,)),
    "rademacher": lambda k: random.rademacher(k, (5,)),
    "permutation": lambda k: (random.permutation(k, 6), random.permutation(k, jnp.ones((3, 2)), independent=True)),
    "choice": lambda k: (random.choice(k, 5, (3,), replace=False), random.choice(k, 3, (2,), p=jnp.ones(3) / 3)),
    "categorical": lambda k: random.categorical(k, jnp.zeros((2, 3))),
    "one uniform number": lambda k: [
        sample(k, (3,))
        for sample in (random.cauchy, random.exponential, random.gumbel, random.laplace, random.logistic)
    ],
    "with parameters": lambda k: (
        random.rayleigh(k, 2.0, (3,)),
        random.pareto(k, 2.0, (3,)),
        random.geometric(k, 0.3, (3,)),
        random.lognormal(k, 2.0, (3,)),
        random.maxwell(k, (3,)),
        random.triangular(k, 0.0, 1.0, 3.0, (3,)),
        random.weibull_min(k, 1.0, 2.0, (3,)),
        random.chisquare(k, 2.0),
        random.generalized_normal(k, 2.0, (2,)),
    ),
    "two keys": lambda k: (random.wald(k, 1.0, (3,)), random.double_sided_maxwell(k, 0.0, 1.0, (3,))),
    "gamma": lambda k: (random.gamma(k, 2.0, (3,)), random.loggamma(k, 0.1), random.dirichlet(k, jnp.ones(3))),
    "made of gammas": lambda k: (random.beta(k, 1.0, 2.0), random.t(k, 3.0), random.f(k, 2.0, 3.0), random.ball(k, 2)),
    "poisson": lambda k: random.poisson(k, jnp.array([0.5, 3.0, 20.0])),
    "orthogonal": lambda k: random.orthogonal(k, 2),
}


def with_rules(fun: Callable[..., Any], key: Any) -> Any:
    """The gradient of a function whose derivatives are the user's own, and draw the same number again."""
    f = polyax.custom_vjp(fun)
    f.defvjp(lambda k, x: (fun(k, x), k), lambda k, ct: (None, ct * random.normal(k)))
    g = polyax.custom_jvp(fun)
    g.defjvp(lambda primals, tangents: (fun(*primals), tangents[1] * random.normal(primals[0])))
    return [polyax.grad(h, 1)(key, X) for h in (f, g)]


def scaled(key: Any, x: Any) -> Any:
    return x * random.normal(key)


def walk(key: Any, x: Any) -> Any:
    """A loop that carries a key."""
    step = lambda carry, _: ((random.split(carry[0])[0], carry[1] * random.normal(carry[0])), carry[0])
    return lax.scan(step, (key, x), None, length=3)


CONSTRUCTS: dict[str, Callable[[Any], Any]] = {
    "split": lambda k: (random.split(k), random.split(k, 3), random.split(k, (2, 3))),
    "fold_in": lambda k: [random.fold_in(k, n) for n in (0, 7, np.uint32(9), jnp.int32(3))],
    "clone": random.clone,
    "key_data": random.key_data,
    "unpacked": lambda k: (lambda a, b: (random.normal(a), random.bits(b)))(*random.split(k)),
    "rows": lambda k: [random.bits(row) for row in random.split(k, 3)],
    "scan, carried": lambda k: walk(k, X),
    "scan, row by row": lambda k: lax.scan(lambda c, row: (c + random.normal(row), row), 0.0, random.split(k, 3)),
    "while": lambda k: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, random.split(c[1])[1]), (0, k)),
    "fori": lambda k: lax.fori_loop(0, 3, lambda i, c: random.fold_in(c, i), k),
    "map": lambda k: lax.map(random.normal, random.split(k, 3)),
    "cond": lambda k: [lax.cond(p, lambda c: random.split(c)[0], lambda c: c, k) for p in (True, random.bits(k) > 5)],
    "switch": lambda k: lax.switch(random.bits(k) % 3, [lambda c, n=n: random.fold_in(c, n) for n in range(3)], k),
    "jit in it": lambda k: polyax.jit(lambda c: polyax.jit(random.split)(c)[0])(k),
    "closed over": lambda k: polyax.jit(lambda x: x * random.normal(k))(X),
    "grad": lambda k: polyax.grad(scaled, 1)(k, X),
    "value_and_grad": lambda k: polyax.value_and_grad(lambda x: x**2 * random.normal(k))(X),
    "jvp": lambda k: polyax.jvp(lambda x: scaled(k, x), (X,), (X,)),
    "vjp": lambda k: polyax.vjp(scaled, k, X)[1](X)[1],
    "linearize": lambda k: polyax.linearize(lambda x: scaled(k, x) ** 2, X)[1](X),
    "hessian": lambda k: polyax.hessian(lambda x: random.normal(k) * x**3)(X),
    "grad of scan": lambda k: polyax.grad(lambda x: walk(k, x)[0][1])(X),
    "checkpoint": lambda k: polyax.grad(polyax.checkpoint(scaled), 1)(k, X),
    "checkpoint of scan": lambda k: polyax.grad(polyax.checkpoint(lambda c, x: walk(c, x)[0][1]), 1)(k, X),
    "users' rules": lambda k: with_rules(scaled, k),
    "vmap": lambda k: polyax.vmap(random.normal)(random.split(k, 3)),
    "vmap, over axis 1": lambda k: polyax.vmap(polyax.vmap(random.bits), 1, 1)(random.split(k, (2, 3))),
    "vmap of split": lambda k: polyax.vmap(lambda c: random.split(c, 2), out_axes=1)(random.split(k, 3)),
    "vmap of fold_in": lambda k: polyax.vmap(random.fold_in, (None, 0))(k, jnp.arange(3)),
    "vmap of cond": lambda k: polyax.vmap(
        lambda c: lax.cond(random.bits(c) % 2 == 0, lambda c: random.split(c)[0], lambda c: c, c)
    )(random.split(k, 5)),
    "vmap of while": lambda k: polyax.vmap(
        lambda c: lax.while_loop(
            lambda s: s[0] % 3 > 0, lambda s: (s[0] // 2, random.split(s[1])[0]), (random.bits(c), c)
        )
    )(random.split(k, 5)),
    "vmap of grad of scan": lambda k: polyax.vmap(polyax.grad(lambda x, c: walk(c, x)[0][1]), (None, 0))(
        X, random.split(k, 3)
    ),
    "a dynamic index": lambda k: random.split(k, 4)[random.bits(k) % 4],
    "gather": lambda k: random.split(k, 4)[jnp.array([[2, 0], [3, 3]])],
    "scatter": lambda k: random.split(k, 4).at[jnp.array([2, 0])].set(random.split(k, 2)),
    "dynamic slices": lambda k: lax.dynamic_update_slice_in_dim(
        random.split(k, 4), lax.dynamic_slice_in_dim(random.split(k, 3), random.bits(k) % 2, 2), 1, 0
    ),
}  # fmt: skip


@pytest.mark.parametrize("fun", [*SAMPLERS.values(), *CONSTRUCTS.values()], ids=[*SAMPLERS, *CONSTRUCTS])
def test_programs_give_what_they_give_on_words(fun: Callable[[Any], Any]) -> None:
    expected = words(fun(random.key_data(KEY)))
    check_same(fun(KEY), expected)
    check_same(polyax.jit(fun)(KEY), polyax.jit(fun)(random.key_data(KEY)))


@pytest.mark.parametrize("fun", [*SAMPLERS.values(), *CONSTRUCTS.values()], ids=[*SAMPLERS, *CONSTRUCTS])
def test_mapped_programs_give_what_they_give_on_words(fun: Callable[[Any], Any]) -> None:
    expected = polyax.jit(polyax.vmap(fun))(random.key_data(KEYS))
    check_same(polyax.jit(polyax.vmap(fun))(KEYS), expected)


SHAPES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "reshape": (lambda k: k.reshape(2, 2), lambda w: w.reshape(2, 2, 2)),
    "ravel": (lambda k: k.reshape(2, 2).ravel(), lambda w: w),
    "transpose": (lambda k: k.reshape(1, 4).T, lambda w: w.reshape(4, 1, 2)),
    "index": (lambda k: k[1], lambda w: w[1]),
    "negative index": (lambda k: k[-1], lambda w: w[-1]),
    "slice": (lambda k: k[1::2], lambda w: w[1::2]),
    "reversed": (lambda k: k[::-1], lambda w: w[::-1]),
    "new axis": (lambda k: k[:, None], lambda w: w[:, None]),
    "mask": (lambda k: k[np.array([True, False, True, False])], lambda w: w[[0, 2]]),
    "stack": (lambda k: jnp.stack([k, k]), lambda w: np.stack([w, w])),
    "array of keys": (lambda k: jnp.array([k[0], k[2]]), lambda w: w[[0, 2]]),
    "concatenate": (lambda k: jnp.concatenate([k, k]), lambda w: np.concatenate([w, w])),
    "broadcast_to": (lambda k: jnp.broadcast_to(k[0], (3,)), lambda w: np.broadcast_to(w[0], (3, 2))),
    "expand_dims": (lambda k: jnp.expand_dims(k, 0), lambda w: w[None]),
    "squeeze": (lambda k: jnp.squeeze(k[None]), lambda w: w),
    "where": (lambda k: jnp.where(jnp.arange(4) < 2, k, k[0]), lambda w: w[[0, 1, 0, 0]]),
    "take": (lambda k: jnp.take(k, jnp.array([3, 0])), lambda w: w[[3, 0]]),
    "take, out of bounds": (lambda k: jnp.take(k, jnp.array([9])), lambda w: np.full((1, 2), 2**32 - 1, np.uint32)),
    "tile": (lambda k: jnp.tile(k, 2), lambda w: np.tile(w, (2, 1))),
    "repeat": (lambda k: jnp.repeat(k, 2), lambda w: np.repeat(w, 2, 0)),
    "roll": (lambda k: jnp.roll(k, 1), lambda w: np.roll(w, 1, 0)),
    "at set": (lambda k: k.at[1].set(k[0]), lambda w: w[[0, 0, 2, 3]]),
    "full": (lambda k: jnp.full(2, k[3]), lambda w: w[[3, 3]]),
    "zeros_like": (jnp.zeros_like, np.zeros_like),
    "ones": (lambda k: jnp.ones(2, k.dtype), lambda w: np.ones((2, 2), np.uint32)),
    "diag": (lambda k: jnp.diag(k[:2]), lambda w: np.stack([[w[0], 0 * w[0]], [0 * w[0], w[1]]])),
    "pad": (lambda k: lax.pad(k, k[1], [(1, 0, 0)]), lambda w: w[[1, 0, 1, 2, 3]]),
    "copy": (lambda k: k.copy(), lambda w: w),
    "barrier": (lambda k: lax.optimization_barrier((1.0, k))[1], lambda w: w),
    "mapped barrier": (polyax.vmap(lambda k: lax.optimization_barrier((k, 1.0))[0]), lambda w: w),
    "sorted along": (lambda k: lax.sort((jnp.array([3, 1, 2, 0]), k), num_keys=1)[1], lambda w: w[[3, 1, 2, 0]]),
    "equal": (lambda k: k == k[1], lambda w: np.array([False, True, False, False])),
    "not equal": (lambda k: k != k[1], lambda w: np.array([True, False, True, True])),
    "array_equal": (lambda k: jnp.array_equal(k, k), lambda w: np.True_),
}


@pytest.mark.parametrize(("fun", "on_words"), SHAPES.values(), ids=SHAPES)
def test_keys_are_elements(fun: Callable[[Any], Any], on_words: Callable[[Any], Any]) -> None:
    own = np.asarray(random.key_data(KEYS))
    for got in (fun(KEYS), polyax.jit(fun)(KEYS)):
        np.testing.assert_array_equal(words(got), on_words(own), strict=True)
    many = random.split(KEY, (3, 4))
    mapped = np.stack([on_words(w) for w in np.asarray(random.key_data(many))])
    np.testing.assert_array_equal(words(polyax.vmap(fun)(many)), mapped, strict=True)


def test_compiled_kernels_give_what_numpy_gives() -> None:
    """One program of many constructs, since each is compiled."""
    chosen = ["scan, carried", "while", "cond", "grad of scan", "vmap of split", "a dynamic index", "scatter", "clone"]
    fun = lambda k: [CONSTRUCTS[name](k) for name in chosen]
    on_cpu = polyax.device_put(KEY, polyax.devices("cpu")[0])
    check_same(polyax.jit(fun)(on_cpu), fun(KEY))


def test_what_a_key_is() -> None:
    key = random.key(18)
    assert (key.shape, key.ndim, key.size, key.itemsize, KEYS.nbytes, len(KEYS)) == ((), 0, 1, 8, 32, 4)
    assert str(key.dtype) == key.dtype.name == "key<fry>" and str(KEYS.aval) == "key<fry>[4]"
    assert repr(key) == str(key) == f"{key}" == "Array((), dtype=key<fry>) overlaying:\n[ 0 18]"
    assert isinstance(key, polyax.Array) and random.key_impl(key) == "threefry2x32"
    kinds = {dtypes.prng_key: True, dtypes.extended: True, np.generic: True, np.integer: False, np.uint32: False}
    assert {kind: dtypes.issubdtype(key.dtype, kind) for kind in kinds} == kinds
    assert jnp.issubdtype(key.dtype, dtypes.prng_key) and not dtypes.issubdtype(np.uint32, dtypes.prng_key)


def test_keys_are_made_of_seeds_and_words() -> None:
    for seed in (0, 18, True, np.int64(7), jnp.int32(3), -1):
        check_same(random.key(seed), random.PRNGKey(seed))
        check_same(random.wrap_key_data(random.PRNGKey(seed)), random.key(seed))
    check_same(polyax.jit(random.key)(3), random.key(3))
    check_same(polyax.vmap(random.key)(jnp.arange(3)), np.array([[0, 0], [0, 1], [0, 2]], np.uint32))
    assert random.wrap_key_data(np.zeros((2, 3, 2), np.uint32)).shape == (2, 3)
    assert random.key(0, impl=random.key_impl(KEY)).dtype is KEY.dtype
    with polyax.config.override(enable_custom_prng=True):
        assert random.PRNGKey(0).dtype is KEY.dtype


def test_copies_of_keys() -> None:
    for made in (copy.deepcopy(KEYS), pickle.loads(pickle.dumps(KEYS)), polyax.device_put(KEYS, polyax.devices()[0])):
        assert made.dtype is KEYS.dtype
        check_same(made, KEYS)
    assert polyax.device_get({"k": KEYS, "x": 1})["k"] is KEYS


PRINTED = {
    "seed": (lambda: polyax.make_jaxpr(random.key)(3), "b:key<fry>[] = random_seed[impl=fry] a"),
    "split": (lambda: polyax.make_jaxpr(random.split)(KEY), "b:key<fry>[2] = random_split[shape=(2,)] a"),
    "fold_in": (lambda: polyax.make_jaxpr(lambda k: random.fold_in(k, 3))(KEY), "random_fold_in a 3"),
    "bits": (lambda: polyax.make_jaxpr(random.bits)(KEY), "b:u32[] = random_bits[bit_width=32 shape=()] a"),
    "mapped": (
        lambda: polyax.make_jaxpr(polyax.vmap(random.bits))(KEYS),
        "u32[4] = random_bits[bit_width=32 shape=()]",
    ),
    "wrap": (
        lambda: polyax.make_jaxpr(random.wrap_key_data)(random.PRNGKey(0)),
        "b:key<fry>[] = random_wrap[impl=fry] a",
    ),
    "unwrap": (lambda: polyax.make_jaxpr(random.key_data)(KEYS), "b:u32[4,2] = random_unwrap a"),
    "clone": (lambda: polyax.make_jaxpr(random.clone)(KEY), "b:key<fry>[] = random_clone a"),
    "constant": (lambda: polyax.make_jaxpr(lambda x: KEY)(X), "lambda a:key<fry>[]; b:f32[]"),
    "shape": (lambda: polyax.eval_shape(random.split, KEY), "ShapeDtypeStruct(shape=(2,), dtype=key<fry>)"),
}


@pytest.mark.parametrize(("made", "text"), PRINTED.values(), ids=PRINTED)
def test_printed_forms(made: Callable[[], Any], text: str) -> None:
    assert text in repr(made())


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "add": (lambda: KEY + 1, TypeError, "add does not accept dtypes key<fry>, int32"),
    "radd": (lambda: 1.0 + KEY, TypeError, "add does not accept dtypes float32, key<fry>"),
    "mul": (lambda: KEY * KEY, TypeError, "mul does not accept dtype key<fry> at position 0. Accepted dtypes"),
    "neg": (lambda: -KEY, TypeError, "neg does not accept dtype key<fry>"),
    "less": (lambda: KEY < KEY, TypeError, "lt does not accept dtype key<fry> at position 0"),
    "equal to a number": (lambda: KEY == 1, TypeError, "equal does not accept dtypes key<fry>, int32"),
    "sum": (lambda: KEYS.sum(), TypeError, "does not accept dtype key<fry>"),
    "matmul": (lambda: KEYS @ KEYS, TypeError, "dot_general does not accept dtype key<fry>"),
    "sort": (lambda: jnp.sort(KEYS), TypeError, "lt_to does not accept dtype key<fry> at position 0"),
    "fold": (lambda: lax.reduce(KEYS, KEY, lambda a, b: a, (0,)), TypeError, "reduce"),
    "window": (
        lambda: lax.reduce_window(KEYS, KEY, lambda a, b: a, (2,), (1,), "VALID"),
        TypeError,
        "reduce_window does not accept keys, got key<fry>[4] key<fry>[]",
    ),
    "psum": (
        lambda: polyax.vmap(lambda k: lax.psum(k, "i"), axis_name="i")(KEYS),
        TypeError,
        "does not accept dtype ke",
    ),
    "convolve": (lambda: jnp.convolve(KEYS, KEYS), TypeError, "conv_general_dilated does not accept keys"),
    "impl and dtype": (
        lambda: random.key(0, impl="threefry2x32", dtype=KEY.dtype),
        ValueError,
        "Cannot specify both `impl` and `dtype` arguments to polyax.random.key",
    ),
    "dtype of numbers": (
        lambda: random.wrap_key_data(random.key_data(KEY), dtype="float32"),
        ValueError,
        'unrecognized PRNG implementation "float32"',
    ),
    "dlpack": (lambda: np.from_dlpack(KEY), TypeError, "PRNGKey dtype cannot be converted"),
    "clamp": (
        lambda: lax.clamp(KEY, KEY, KEY),
        TypeError,
        "clamp does not accept keys, got key<fry>[] key<fry>[]",
    ),
    "astype": (lambda: KEY.astype("uint32"), ValueError, "Cannot convert_element_type from key<fry> to uint32"),
    "bitcast": (lambda: lax.bitcast_convert_type(KEY, "uint32"), ValueError, "unexpected dtype=key<fry>"),
    "promotion": (lambda: jnp.stack([KEY, 1.0]), ValueError, "dtype=key<fry> is not a valid dtype for JAX type promo"),
    "to numpy": (lambda: np.asarray(KEY), TypeError, "PRNGKey dtype cannot be converted to a NumPy array"),
    "bool": (lambda: bool(KEY), TypeError, "key array cannot be converted to boolean"),
    "int": (lambda: int(KEY), TypeError, "PRNGKey dtype cannot be converted"),
    "hash": (lambda: hash(KEY), TypeError, "unhashable"),
    "len": (lambda: len(KEY), TypeError, "len() of unsized object"),
    "iteration": (lambda: list(KEY), TypeError, "iteration over a 0-d array"),
    "index": (lambda: KEY[0], IndexError, "Too many indices"),
    "several keys": (
        lambda: random.normal(KEYS),
        ValueError,
        "normal accepts a single key, but was given a key array of ",
    ),
    "no such generator": (
        lambda: random.key(0, impl="dice"),
        ValueError,
        'Did you mean one of: "threefry2x32", "rbg", "unsafe_rbg", "philox2x32", ',
    ),
    "no name": (lambda: random.key(0, impl=3), TypeError, "for specifying PRNG implementation"),
    "key of a key": (lambda: random.key(KEY), TypeError, "key accepts a scalar seed, but was given a PRNG key."),
    "key of seeds": (
        lambda: random.key(jnp.arange(3)),
        TypeError,
        "key accepts a scalar seed, but was given an array of",
    ),
    "key of a float": (lambda: random.key(1.5), TypeError, "PRNG key seed must be an integer"),
    "key of nothing": (lambda: random.key(None), ValueError, "None is not a valid value"),
    "nothing folded in": (lambda: random.fold_in(random.key(0), None), ValueError, "None is not a valid value"),
    "other words": (lambda: random.wrap_key_data(jnp.arange(2)), TypeError, "key_data.dtype = uint32; got dtype=int32"),
    "three words": (lambda: random.wrap_key_data(np.zeros(3, np.uint32)), TypeError, "key_data.shape to end with (2,)"),
    "a scalar": (lambda: random.wrap_key_data(np.uint32(3)), TypeError, "expected key_data.ndim >= 1; got ndim=0"),
    "grad": (lambda: polyax.grad(scaled)(KEY, X), TypeError, "grad requires real- or complex-valued inputs"),
    "jacfwd": (lambda: polyax.jacfwd(scaled)(KEY, X), TypeError, "key<fry>"),
    "tangent": (lambda: polyax.jvp(scaled, (KEY, X), (KEY, X)), TypeError, "expected tangent dtype float0"),
    "carry": (
        lambda: lax.scan(lambda k, _: (random.key_data(k), None), KEY, None, length=2),
        TypeError,
        "has type key<fry>[] but the corresponding output carry component has type uint32[2]",
    ),
    "setting": (
        lambda: polyax.config.update("jax_default_prng_impl", "dice"),
        ValueError,
        "new enum value must be in ['threefry2x32', 'rbg', 'unsafe_rbg', 'philox2x32', 'philox4x32', ",
    ),
}


@pytest.mark.parametrize(("call", "error", "text"), BAD.values(), ids=BAD)
def test_bad_input(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_collectives_of_mapped_keys() -> None:
    own = np.asarray(random.key_data(KEYS))
    mapped = lambda fun: polyax.vmap(fun, axis_name="i")(KEYS)
    check_same(mapped(lambda k: lax.all_gather(k, "i"))[2], own)
    sent = mapped(lambda k: lax.ppermute(k, "i", [(0, 1), (1, 2), (2, 3)]))
    check_same(sent, np.concatenate([np.zeros_like(own[:1]), own[:3]]))


def test_keys_have_no_tangents() -> None:
    (of_key, of_x) = polyax.grad(scaled, (0, 1), allow_int=True)(KEYS[0], X)
    assert of_key.dtype == dtypes.float0 and of_key.shape == ()
    check_same(of_x, random.normal(KEYS[0]))
    (keys, tangent) = polyax.jvp(random.split, (KEY,), (np.zeros((), dtypes.float0),))
    assert tangent.dtype == dtypes.float0 and tangent.shape == keys.shape == (2,)


def test_callbacks_get_words(capfd: pytest.CaptureFixture[str]) -> None:
    of_words = lambda k: polyax.pure_callback(lambda w: np.float32(w[1]), polyax.ShapeDtypeStruct((), np.float32), k)
    assert of_words(random.key(7)) == polyax.jit(of_words)(random.key(7)) == 7
    polyax.jit(lambda k: polyax.debug.print("words {}", k))(random.key(7))
    polyax.effects_barrier()
    assert "words [0 7]" in capfd.readouterr().out


def test_programs_without_keys_are_compiled_as_they_are() -> None:
    closed = polyax.make_jaxpr(lambda x: lax.scan(lambda c, y: (c * y, polyax.jit(jnp.sin)(c)), x, jnp.ones(3)))(X)
    assert elaborated(closed) is closed


def test_programs_ahead_of_time_and_donated_keys() -> None:
    compiled = polyax.jit(scaled).lower(polyax.ShapeDtypeStruct((), KEY.dtype), X).compile()
    check_same(compiled(KEY, X), scaled(KEY, X))
    given = random.key(3)
    check_same(polyax.jit(lambda k: random.split(k)[0], donate_argnums=0)(given), random.split(random.PRNGKey(3))[0])
    assert given.is_deleted()


def test_the_newer_layout() -> None:
    with polyax.threefry_partitionable(True):
        for fun in (lambda k: random.split(k, (2, 3)), lambda k: random.bits(k, (2, 3))):
            check_same(polyax.jit(fun)(KEY), fun(random.key_data(KEY)))


@pytest.mark.parametrize("platform_name", ["cpu", "reference"])
def test_on_eight_virtual_devices(platform_name: str) -> None:
    cases = Path(__file__).with_name("key_mesh_cases.py")
    process.cases(cases, POLYAX_DEVICE=platform_name, POLYAX_NUM_CPU_DEVICES="8")


def test_the_dtype_of_a_key_names_its_generator() -> None:
    assert random.key(3, dtype=KEY.dtype).dtype == KEY.dtype
    words = random.key_data(random.key(3))
    assert (random.key_data(random.wrap_key_data(words, dtype=KEY.dtype)) == words).all()


def test_the_layout_in_force_where_bits_are_asked_for_counts() -> None:
    def other(ask: Callable[[Any], Any], key: Any) -> Any:
        with polyax.threefry_partitionable(not polyax.config.threefry_partitionable):
            return ask(key)

    for ask in (lambda k: random.bits(k, (4,)), lambda k: random.split(k, 3), lambda k: random.uniform(k, (3,))):
        wanted = other(ask, KEY)
        assert (words(wanted) != words(ask(KEY))).any()
        check_same(polyax.jit(lambda k, ask=ask: other(ask, k))(KEY), wanted)
        check_same(polyax.jit(lambda k, ask=ask: other(polyax.jit(ask), k))(KEY), wanted)
    assert "partitionable" not in str(polyax.make_jaxpr(lambda k: random.bits(random.split(k)[0]))(KEY))
