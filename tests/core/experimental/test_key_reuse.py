"""Use of random keys: what functions do with them, and who uses one twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax, random
from polyax.errors import KeyReuseError
from polyax.experimental import key_reuse as kr

KEY, KEYS = random.key(0), random.split(random.key(1), 3)


def counted(key: Any, turn: Callable[[Any], Any]) -> Any:
    """A loop over a key and a number."""
    return lax.while_loop(lambda c: c[1] < 3, lambda c: (turn(c[0]), c[1] + 1), (key, 0))


SIGNATURES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "seed": (random.key, (0,), "Source(0),"),
    "split": (random.split, (KEY,), "Sink(0), Source(0)"),
    "numbers": (random.normal, (KEY,), "Sink(0),"),
    "fold in": (lambda k: random.fold_in(k, 1), (KEY,), "Source(0),"),
    "clone": (random.clone, (KEY,), "Source(0),"),
    "words": (random.key_data, (KEY,), ""),
    "from words": (random.wrap_key_data, (random.key_data(KEY),), "Source(0),"),
    "itself, twice": (lambda k: (k, k), (KEY,), "Forward(0, 0), Forward(0, 1)"),
    "used and passed on": (lambda k: (random.normal(k), k), (KEY,), "Sink(0), Forward(0, 1)"),
    "twice by a clone": (lambda k: random.normal(k) + random.uniform(random.clone(k)), (KEY,), "Sink(0),"),
    "each of several": (lambda k: [random.normal(q) for q in random.split(k, 3)], (KEY,), "Sink(0),"),
    "some": (lambda k: (random.normal(k[0]), random.normal(k[1])), (KEYS,), "Sink(0, [ True  True False]),"),
    "a part": (lambda k: k[:2], (KEYS,), "Sink(0, [ True  True False]), Source(0)"),
    "stacked": (lambda a, b: jnp.stack([a, b]), (KEY, KEYS[0]), "Sink(0), Sink(1), Source(0)"),
    "reshaped": (lambda k: k.reshape(1, 3), (KEYS,), "Forward(0, 0),"),
    "written": (lambda a, b: a.at[0].set(b), (KEYS, KEY), "Sink(1), Forward(0, 0)"),
    "compared": (lambda a, b: a == b, (KEY, KEYS[0]), ""),
    "jit": (jax.jit(random.normal), (KEY,), "Sink(0),"),
    "cond": (lambda k: lax.cond(True, random.normal, lambda _: 0.0, k), (KEY,), "Sink(0),"),
    "cond of keys": (
        lambda k: lax.cond(True, lambda q: random.split(q)[0], lambda q: random.fold_in(q, 1), k),
        (KEY,),
        "Sink(0), Source(0)",
    ),
    "scan": (
        lambda k: lax.scan(lambda c, _: (random.split(c)[0], 0.0), k, None, length=3),
        (KEY,),
        "Sink(0), Source(0)",
    ),
    "scanned": (lambda k: lax.scan(lambda c, x: (c + random.normal(x), None), 0.0, k), (KEYS,), "Sink(0),"),
    "while": (lambda k: counted(k, lambda q: random.split(q)[1]), (KEY,), "Sink(0), Source(0)"),
    "vmap": (jax.vmap(random.split), (KEYS,), "Sink(0), Source(0)"),
    "gamma, mapped": (jax.vmap(lambda k: random.gamma(k, 2.0)), (KEYS,), "Sink(0),"),
    "checkpoint, differentiated": (
        jax.grad(lambda x, k: jax.checkpoint(lambda y: y * y * random.normal(k))(x)),
        (1.0, KEY),
        "Sink(1),",
    ),
    "consume": (kr.consume, (KEY,), "Sink(0), Forward(0, 0)"),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str) -> None:
    fun, args, expected = SIGNATURES[name]
    assert repr(kr.function_type_signature(fun, *args)) == f"KeyReuseSignature({expected})"


SAMPLERS: dict[str, Callable[[Any], Any]] = {
    "poisson": lambda k: random.poisson(k, 3.0),
    "binomial": lambda k: random.binomial(k, 3.0, 0.5),
    "multinomial": lambda k: random.multinomial(k, 3.0, jnp.ones(3) / 3),
    "permutation": lambda k: random.permutation(k, 5),
    "choice": lambda k: random.choice(k, 5, (2,), replace=False),
    "dirichlet": lambda k: random.dirichlet(k, jnp.ones(3)),
    "t": lambda k: random.t(k, 3.0),
    "ball": lambda k: random.ball(k, 3),
    "orthogonal": lambda k: random.orthogonal(k, 2),
    "wald": lambda k: random.wald(k, 1.0),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_use_a_key_once(name: str) -> None:
    for fun, key in ((SAMPLERS[name], KEY), (jax.vmap(SAMPLERS[name]), KEYS)):
        assert kr.function_type_signature(fun, key) == kr.KeyReuseSignature(kr.Sink(0))


TWICE: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "numbers": (lambda k: random.normal(k) + random.uniform(k), KEY, "In random_bits, argument 0 is already consumed"),
    "same part": (lambda k: random.normal(k[0]) + random.normal(k[0]), KEYS, "In slice, argument 0 is already"),
    "joined": (lambda k: jnp.concatenate([k, k]), KEYS, "In concatenate, argument 1 is already consumed"),
    "reshaped": (lambda k: (kr.consume(k.reshape(1, 3)), kr.consume(k)), KEYS, "In consume, argument 0"),
    "jit": (lambda k: [f(k) for f in 2 * [jax.jit(random.normal)]], KEY, "In jit, argument 0 is already consumed"),
    "vmap": (jax.vmap(lambda k: random.normal(k) + random.normal(k)), KEYS, "In random_bits, argument 0 is already"),
    "branch": (
        lambda k: (lax.cond(True, random.normal, lambda _: 0.0, k), random.normal(k)),
        KEY,
        "In random_bits, argument 0",
    ),
    "in each turn": (
        lambda k: lax.scan(lambda c, _: (c + random.normal(k), None), 0.0, None, length=3),
        KEY,
        "scan body function leads to key reuse when repeatedly executed, because key constants are repeatedly consumed",
    ),
    "given on": (
        lambda k: lax.scan(lambda c, _: (c, random.normal(c)), k, None, length=3),
        KEY,
        "scan body function leads to key reuse when repeatedly executed, because key constants are repeatedly consumed",
    ),
    "carried": (
        lambda k: lax.scan(lambda c, _: (c[::-1], random.normal(c[0])), tuple(random.split(k)), None, length=3),
        KEY,
        "scan body function .* because consumed inputs don't match sourced outputs",
    ),
    "while": (
        lambda k: lax.fori_loop(0, 3, lambda _, c: c + random.normal(k), 0.0),
        KEY,
        "(scan|while_loop) body function leads to key reuse when repeatedly executed",
    ),
    "condition": (
        lambda k: lax.while_loop(lambda c: random.uniform(c) < 0.5, lambda c: random.split(c)[1], k),
        KEY,
        "while_loop cond and body functions both use the same key",
    ),
}


@pytest.mark.parametrize("name", TWICE)
def test_programs_that_use_a_key_twice(name: str) -> None:
    fun, key, text = TWICE[name]
    with pytest.raises(KeyReuseError, match=text) as caught:
        kr.check_key_reuse(fun, key)
    assert "test_key_reuse.py" in str(caught.value)  # the user's line
    with pytest.raises(KeyReuseError, match=text):
        kr.check_key_reuse_jaxpr(jax.make_jaxpr(fun)(key))
    with jax.debug_key_reuse(True), pytest.raises(KeyReuseError, match=text):
        jax.jit(fun)(random.clone(key))


def test_assertions() -> None:
    kr.check_key_reuse(lambda k: (kr.assert_unconsumed(k), random.normal(k), kr.assert_consumed(k)), KEY)
    kr.check_key_reuse(lambda k: (random.normal(k[0]), kr.assert_consumed(k, np.array([True, False, False]))), KEYS)
    with pytest.raises(AssertionError, match="Expected key to not be consumed"):
        kr.check_key_reuse(lambda k: kr.assert_unconsumed(kr.consume(k)), KEY)
    with pytest.raises(AssertionError, match="Expected key to be consumed"):
        kr.check_key_reuse(lambda k: kr.assert_consumed(k), KEY)
    assert jax.jit(kr.consume)(KEY) == kr.consume(KEY) == KEY
    with pytest.raises(TypeError, match="consume takes an array of keys"):
        kr.consume(jnp.ones(2))


@pytest.fixture
def watched() -> Any:
    with jax.debug_key_reuse(True):
        yield


@pytest.mark.usefixtures("watched")
def test_keys_used_in_two_calls() -> None:
    key, drawn = random.key(0), jax.jit(lambda k: (k, random.normal(k)))
    drawn(random.clone(key))
    passed, _ = drawn(key)
    for again, what in ((key, "jit-compiled function"), (passed, "jit-compiled function")):
        with pytest.raises(KeyReuseError, match=f"Previously-consumed key passed to {what} at index 0. It was used at"):
            drawn(again)
    with pytest.raises(KeyReuseError, match="passed to jit-compiled function at index 0.*test_key_reuse.py"):
        random.normal(passed)
    with pytest.raises(KeyReuseError, match="passed to jit-compiled function at index 0"):
        random.split(key)
    closed_over = random.key(2)
    draw = jax.jit(lambda: random.normal(closed_over))
    draw()
    with pytest.raises(KeyReuseError, match="passed to jit-compiled function at index 0"):
        draw()


@pytest.mark.usefixtures("watched")
def test_parts_are_told_apart() -> None:
    keys = random.split(random.key(0), 3)
    random.normal(keys[0])
    random.normal(keys[1])
    with pytest.raises(KeyReuseError, match="Previously-consumed key passed to slice at index 0"):
        random.normal(keys[0])
    with pytest.raises(KeyReuseError, match="Previously-consumed key passed to random_bits at index 0"):
        jax.vmap(random.normal)(keys)
    lax.scan(lambda c, k: (c, random.normal(k)), 0.0, random.split(random.key(1), 3))


@pytest.mark.usefixtures("watched")
def test_what_is_fine() -> None:
    key = random.key(0)
    for turn in range(4):
        key, own = random.split(key)
        assert np.isfinite(random.normal(own)) and random.key_data(key) is not None and (key == key).all()
        other = random.fold_in(key, turn)
        jax.grad(lambda x, k: x * random.gamma(k, 2.0))(1.0, other)
    words = random.PRNGKey(0)
    assert random.normal(words) == random.normal(words)


def test_nothing_is_watched_unless_asked_for() -> None:
    key = random.key(0)
    assert random.normal(key) == random.normal(key) == jax.jit(random.normal)(key)
    with jax.debug_key_reuse(True):
        random.normal(key)
