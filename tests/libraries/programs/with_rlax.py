"""rlax: losses of reinforcement learning."""

import jax
import jax.numpy as jnp
import rlax
from common import program


@program()
def losses():
    q = jnp.sin(jnp.arange(12.0)).reshape(4, 3)
    a = jnp.array([0, 2, 1, 1])
    r, d = jnp.array([1.0, 0.0, -1.0, 0.5]), jnp.array([0.9, 0.9, 0.0, 0.9])
    q_loss = jax.jit(jax.vmap(rlax.q_learning))
    double = jax.vmap(rlax.double_q_learning)
    v = jnp.cos(jnp.arange(5.0))
    log_rhos = jnp.array([0.1, -0.2, 0.3, 0.0])
    vtrace = rlax.vtrace_td_error_and_advantage(v[:-1], v[1:], r, d, jnp.exp(log_rhos))
    grad = jax.grad(lambda q: jnp.mean(q_loss(q, a, r, d, jnp.roll(q, 1, 0)) ** 2))(q)
    return {
        "q": q_loss(q, a, r, d, jnp.roll(q, 1, 0)),
        "double": double(q, a, r, d, q * 2, q[::-1]),
        "lambda": rlax.lambda_returns(r, d, v[1:], 0.9),
        "gae": rlax.truncated_generalized_advantage_estimation(r, d, 0.9, v),
        "vtrace": vtrace.errors,
        "advantage": vtrace.pg_advantage,
        "ppo": rlax.clipped_surrogate_pg_loss(jnp.exp(log_rhos), r, 0.2),
        "policy": rlax.policy_gradient_loss(q, a, r, jnp.ones(4)),
        "entropy": rlax.entropy_loss(q, jnp.ones(4)),
        "grad": grad,
    }


@program()
def distributions_and_values():
    logits = jnp.linspace(-1.0, 1.0, 6)
    support = jnp.linspace(-2.0, 2.0, 5)
    probs = jax.nn.softmax(jnp.arange(5.0))
    policy = rlax.epsilon_greedy(0.1)
    return {
        "projected": rlax.categorical_l2_project(support * 0.9 + 0.3, probs, support),
        "td": rlax.categorical_td_learning(support, probs, 0.5, 0.9, support, probs),
        "quantile": rlax.quantile_regression_loss(logits, jnp.full(6, 0.5), support),
        "greedy": policy.probs(logits),
        "sampled": policy.sample(jax.random.PRNGKey(0), logits),
        "two_hot": rlax.transform_to_2hot(jnp.array(0.4), -2.0, 2.0, 5),
        "scaled": rlax.signed_hyperbolic(support),
        "back": rlax.signed_parabolic(rlax.signed_hyperbolic(support)),
    }


@program()
def a_bandit_that_learns():
    means = jnp.array([0.1, 0.9, 0.4])

    def step(logits, key):
        k1, k2 = jax.random.split(key)
        a = rlax.softmax().sample(k1, logits)
        reward = means[a] + 0.1 * jax.random.normal(k2)
        loss = lambda p: rlax.policy_gradient_loss(p[None], a[None], reward[None] - 0.4, jnp.ones(1))
        return logits - 0.3 * jax.grad(loss)(logits), reward

    logits, rewards = jax.jit(lambda keys: jax.lax.scan(step, jnp.zeros(3), keys))(
        jax.random.split(jax.random.PRNGKey(3), 200)
    )
    return {"logits": logits, "rewards": rewards[-20:]}
