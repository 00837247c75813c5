"""optax: gradient descent by many rules."""

import jax
import jax.numpy as jnp
import optax
from common import blobs, program


def _mlp(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def _init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (m, n)) / m**0.5, jnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:])]


def _loss(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(_mlp(params, x), y).mean()


def _train(optimizer, steps=20):
    x, y = blobs()
    params = _init(jax.random.key(0), [8, 16, 4])
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        loss, grads = jax.value_and_grad(_loss)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    losses = []
    for _ in range(steps):
        params, state, loss = step(params, state)
        losses.append(loss)
    return {"losses": jnp.stack(losses), "norm": optax.global_norm(params)}


@program()
def adamw_with_schedule_and_clipping():
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 5, 20)
    return _train(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-3)))


@program()
def many_optimizers():
    rules = {
        "sgd": optax.sgd(0.1, momentum=0.9, nesterov=True),
        "lion": optax.lion(1e-3),
        "lamb": optax.lamb(1e-2),
        "rmsprop": optax.rmsprop(1e-3),
        "adafactor": optax.adafactor(1e-2),
        "adabelief": optax.adabelief(1e-3),
        "radam": optax.radam(1e-2),
        "yogi": optax.yogi(1e-2),
        "noisy": optax.noisy_sgd(1e-2),
    }
    return {name: _train(rule, 5)["losses"] for name, rule in rules.items()}


@program()
def steps_together_and_by_part():
    by_part = optax.multi_transform(
        {"first": optax.adam(1e-2), "rest": optax.sgd(1e-1)},
        lambda params: [("first", "first")] + [("rest", "rest")] * (len(params) - 1),
    )
    return _train(optax.MultiSteps(by_part, every_k_schedule=3), 9)


@program(rtol=1e-3)
def lbfgs_on_rosenbrock():
    solver = optax.lbfgs()

    def fun(x):
        return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    value_and_grad = optax.value_and_grad_from_state(fun)
    x = jnp.array([-1.2, 1.0, 0.5])
    state = solver.init(x)

    @jax.jit
    def step(x, state):
        value, grad = value_and_grad(x, state=state)
        updates, state = solver.update(grad, state, x, value=value, grad=grad, value_fn=fun)
        return optax.apply_updates(x, updates), state, value

    values = []
    for _ in range(6):
        x, state, value = step(x, state)
        values.append(value)
    for _ in range(40):
        x, state, value = step(x, state)
    return {"values": jnp.stack(values), "near": jnp.round(x, 2)}


@program()
def losses():
    x = jnp.linspace(-2.0, 2.0, 12).reshape(3, 4)
    y = jax.nn.softmax(jnp.flip(x, 1))
    return {
        "huber": optax.huber_loss(x, y),
        "hinge": optax.hinge_loss(x, jnp.sign(y - 0.3)),
        "kl": optax.kl_divergence(jax.nn.log_softmax(x), y),
        "ctc": optax.ctc_loss(
            jnp.sin(jnp.arange(30.0)).reshape(1, 6, 5), jnp.zeros((1, 6)), jnp.array([[1, 2, 2]]), jnp.zeros((1, 3))
        ),
        "cosine": optax.cosine_distance(x, y),
        "sigmoid": optax.sigmoid_binary_cross_entropy(x, y),
    }
