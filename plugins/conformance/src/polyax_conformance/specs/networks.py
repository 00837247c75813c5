"""What networks are made of, against formulas in plain NumPy."""

from __future__ import annotations

import numpy as np

import polyax as jax
from polyax_conformance.specs.spec import TableRow, normal

X = normal(3, 4)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def nn(name):
    return lambda xp, x: getattr(jax.nn, name)(x)


ORACLES = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": sigmoid,
    "softplus": lambda x: np.log1p(np.exp(x)),
    "silu": lambda x: x * sigmoid(x),
    "softmax": lambda x: np.exp(log_softmax(x)),
    "log_softmax": log_softmax,
    "logsumexp": lambda x: np.log(np.exp(x).sum()),
    "log_sigmoid": lambda x: -np.log1p(np.exp(-x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}


def mlp(xp, w1, w2, x):
    logits = xp.dot(w2, jax.nn.relu(xp.dot(w1, x)))
    return logits - jax.nn.logsumexp(logits)


def mlp_oracle(w1, w2, x):
    return log_softmax(w2 @ np.maximum(w1 @ x, 0))


SPECS = [
    *(TableRow(f"nn.{name}", nn(name), (X,), oracle, sample=name == "relu") for name, oracle in ORACLES.items()),
    TableRow("perceptron", mlp, (normal(5, 3), normal(4, 5), normal(3)), mlp_oracle, sample=True),
]
