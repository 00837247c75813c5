"""chex: dataclasses that are trees, and assertions, in programs too."""

import chex
import jax
import jax.numpy as jnp
from common import program


@chex.dataclass
class State:
    position: chex.Array
    velocity: chex.Array


@program()
def dataclasses():
    state = State(position=jnp.arange(3.0), velocity=jnp.ones(3))

    @jax.jit
    def step(s):
        return s.replace(position=s.position + 0.1 * s.velocity, velocity=s.velocity - 0.1 * s.position)

    for _ in range(5):
        state = step(state)
    batch = jax.vmap(lambda v: step(state.replace(velocity=v)))(jnp.eye(3))
    return {"position": state.position, "batch": batch.velocity, "leaves": len(jax.tree.leaves(state))}


@program()
def assertions():
    x = jnp.ones((2, 3))
    chex.assert_shape(x, (2, None))
    chex.assert_rank([x, 1.0], [2, 0])
    chex.assert_type([x, 1], [float, int])
    chex.assert_tree_all_finite({"a": x})
    chex.assert_trees_all_close({"a": x}, {"a": x + 1e-8}, atol=1e-6)
    chex.assert_equal_shape([x, x * 2])
    chex.assert_numerical_grads(lambda t: jnp.sum(jnp.sin(t)), (x,), order=1)
    failed = 0
    for check in (
        lambda: chex.assert_shape(x, (3, 2)),
        lambda: chex.assert_rank(x, 1),
        lambda: chex.assert_trees_all_equal({"a": x}, {"b": x}),
        lambda: chex.assert_trees_all_close(x, x + 1),
        lambda: chex.assert_tree_all_finite(x / 0),
    ):
        try:
            check()
        except AssertionError:
            failed += 1

    @jax.jit
    @chex.assert_max_traces(n=1)
    def traced(y):
        return y + 1

    traced(x), traced(x)
    try:
        traced(jnp.ones(4))
    except AssertionError:
        failed += 1
    return {"failed": failed}


@program()
def assertions_of_values_in_jit():
    @chex.chexify
    @jax.jit
    def root(x):
        y = jnp.sqrt(x)
        chex.assert_tree_all_finite(y)
        return y

    result = root(4.0)
    chex.block_until_chexify_assertions_complete()
    refused = 0
    try:
        root(-1.0)
        chex.block_until_chexify_assertions_complete()
    except Exception:
        refused = 1
    return {"root": result, "refused": refused}


class Everywhere(chex.TestCase):
    @chex.variants(with_jit=True, without_jit=True, with_device=True)
    def test_sum(self):
        total = self.variant(lambda x: jnp.sum(x**2))(jnp.arange(4.0))
        assert total == 14.0


@program()
def variants():
    import unittest

    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Everywhere)
    result = unittest.TextTestRunner(verbosity=0).run(suite)
    return {"run": result.testsRun, "failed": len(result.failures) + len(result.errors)}
