"""mctx: searches through trees of states that a model imagines."""

import functools

import jax
import jax.numpy as jnp
import mctx
from common import program

BATCH, ACTIONS, SIZE = 4, 5, 16


def wave(*shape):
    return jnp.sin(jnp.arange(float(jnp.prod(jnp.array(shape)))) * 1.7).reshape(shape)


TURNS, VALUES, LOGITS = 0.3 * wave(ACTIONS, SIZE, SIZE), wave(SIZE), wave(SIZE, ACTIONS)


def imagined(params, key, action, state):
    after = jnp.tanh(jnp.einsum("bij,bj->bi", TURNS[action], state))
    told = mctx.RecurrentFnOutput(
        reward=after[:, 0], discount=jnp.full(BATCH, 0.9), prior_logits=after @ LOGITS, value=after @ VALUES
    )
    return told, after


def searched(policy, **options):
    state = wave(BATCH, SIZE)
    root = mctx.RootFnOutput(prior_logits=state @ LOGITS, value=state @ VALUES, embedding=state)
    run = functools.partial(policy, recurrent_fn=imagined, num_simulations=24, **options)
    found = jax.jit(lambda key: run(params=(), rng_key=key, root=root))(jax.random.PRNGKey(0))
    return {"action": found.action, "weights": found.action_weights, "values": found.search_tree.node_values}


@program()
def muzero():
    return searched(mctx.muzero_policy, dirichlet_fraction=0.0)


@program()
def gumbel_muzero():
    return searched(mctx.gumbel_muzero_policy, max_num_considered_actions=4)
