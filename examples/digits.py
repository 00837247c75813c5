"""Trains a network on handwritten digits: plain Python functions, differentiated, vectorised and compiled."""

import numpy as np
from sklearn.datasets import load_digits

import polyax as jax
import polyax.numpy as jnp


def init(sizes, key, scale=0.1):
    keys = jax.random.split(key, len(sizes))
    return [(scale * jax.random.normal(k, (n, m)), jnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:])]


def predict(params, image):
    *hidden, (w_last, b_last) = params
    for w, b in hidden:
        image = jax.nn.relu(jnp.dot(w, image) + b)
    logits = jnp.dot(w_last, image) + b_last
    return logits - jax.nn.logsumexp(logits)


batched_predict = jax.vmap(predict, in_axes=(None, 0))


def loss(params, images, targets):
    return -jnp.mean(batched_predict(params, images) * targets)


def update(params, images, targets, rate=0.5):
    value, grads = jax.value_and_grad(loss)(params, images, targets)
    return jax.tree_util.tree_map(lambda p, g: p - rate * g, params, grads), value


def accuracy(params, images, labels):
    return jnp.mean(jnp.argmax(batched_predict(params, images), axis=1) == labels)


def load():
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images, labels = digits.data[order].astype(np.float32) / 16, digits.target[order].astype(np.int32)
    return np.split(images, [1437]), np.split(labels, [1437])


def main():
    (train, test), (y_train, y_test) = load()
    params, step = init([64, 512, 512, 10], jax.random.PRNGKey(0)), jax.jit(update)
    for epoch in range(20):
        for i in range(0, len(train), 128):
            params, value = step(params, train[i : i + 128], jax.nn.one_hot(y_train[i : i + 128], 10))
        print(f"epoch {epoch + 1:2}: loss {value:.4f}, test accuracy {accuracy(params, test, y_test):.1%}")


if __name__ == "__main__":
    main()
