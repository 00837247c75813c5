"""Layers: the shapes that they announce, what they compute, and networks of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import random
from polyax.example_libraries import optimizers, stax

KEY = random.PRNGKey(0)
IMAGES = np.cos(np.arange(2 * 5 * 5 * 2.0)).reshape(2, 5, 5, 2).astype(np.float32)
ROWS = IMAGES[..., 0, :]

LAYERS: dict[str, tuple[Any, np.ndarray]] = {
    "Dense": (stax.Dense(3), ROWS),
    "Conv": (stax.Conv(3, (2, 3), (2, 1), "SAME"), IMAGES),
    "Conv, unpadded": (stax.Conv(3, (2, 3)), IMAGES),
    "GeneralConv": (stax.GeneralConv(("NCHW", "OIHW", "NHWC"), 4, (2, 2)), IMAGES),
    "ConvTranspose": (stax.ConvTranspose(3, (2, 2), (2, 2), "SAME"), IMAGES),
    "Conv1DTranspose": (stax.Conv1DTranspose(3, (2,)), ROWS),
    "BatchNorm": (stax.BatchNorm(), IMAGES),
    "BatchNorm of one axis": (stax.BatchNorm(axis=0, center=False), ROWS),
    "MaxPool": (stax.MaxPool((2, 2), (2, 2), "SAME"), IMAGES),
    "SumPool in another layout": (stax.SumPool((2, 2), spec="NCXY"), IMAGES),
    "AvgPool": (stax.AvgPool((3, 3), padding="SAME"), IMAGES),
    "Flatten": (stax.Flatten, IMAGES),
    "Identity": (stax.Identity, IMAGES),
    "elementwise": (stax.elementwise(jnp.clip, max=0.5), ROWS),
    "shape_dependent": (stax.shape_dependent(lambda shape: stax.Dense(shape[-1])), ROWS),
}


@pytest.mark.parametrize("name", LAYERS)
def test_shapes_are_as_announced(name: str) -> None:
    (init, apply), x = LAYERS[name]
    shape, params = init(KEY, x.shape)
    out = polyax.jit(apply)(params, x)
    assert out.shape == tuple(shape) and np.isfinite(out).all()


def test_values() -> None:
    dense = stax.Dense(3)
    _, (w, b) = dense[0](KEY, ROWS.shape)
    np.testing.assert_allclose(dense[1]((w, b), ROWS), ROWS @ np.asarray(w) + np.asarray(b), rtol=1e-5, atol=1e-6)
    init, apply = stax.BatchNorm()
    out = apply(init(KEY, IMAGES.shape)[1], IMAGES)
    np.testing.assert_allclose(out.mean((0, 1, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(out.var((0, 1, 2)), 1, atol=1e-3)
    ones = np.ones((1, 3, 3, 1), np.float32)
    assert stax.AvgPool((3, 3), padding="SAME")[1]((), ones).tolist() == ones.tolist()
    assert stax.SumPool((2, 2))[1]((), ones).tolist() == (4 * ones[:, :2, :2]).tolist()
    assert stax.MaxPool((2, 2))[1]((), -ones).tolist() == (-ones[:, :2, :2]).tolist()


@pytest.mark.parametrize(
    "name", ["Tanh", "Relu", "Exp", "Elu", "Selu", "LogSoftmax", "Softmax", "Softplus", "Sigmoid", "LeakyRelu", "Gelu"]
)
def test_activations(name: str) -> None:
    nn = polyax.nn
    functions = {"Tanh": jnp.tanh, "Exp": jnp.exp, "LogSoftmax": nn.log_softmax, "LeakyRelu": nn.leaky_relu}
    function = functions.get(name) or getattr(nn, name.lower())
    np.testing.assert_allclose(getattr(stax, name)[1]((), ROWS), function(ROWS), rtol=1e-6)


def test_dropout() -> None:
    x = jnp.ones((4000,))
    out = stax.Dropout(0.25)[1]((), x, rng=KEY)
    assert set(np.unique(out)) == {0, 4} and abs(float(out.mean()) - 1) < 0.1
    assert (stax.Dropout(0.25, mode="test")[1]((), x, rng=KEY) == 1).all()
    with pytest.raises(ValueError, match="Dropout layer requires apply_fun to be called with a PRNG key"):
        stax.Dropout(0.5)[1]((), x)


def test_networks_of_layers_train() -> None:
    init, apply = stax.serial(
        stax.Dense(16), stax.Tanh, stax.Dropout(0.9), stax.FanOut(2), stax.parallel(stax.Identity, stax.Dense(16)),
        stax.FanInSum, stax.FanOut(2), stax.parallel(stax.Relu, stax.Identity), stax.FanInConcat(), stax.Dense(1),
    )  # fmt: skip
    x = np.linspace(-1, 1, 32, dtype=np.float32)[:, None]
    shape, params = init(KEY, x.shape)
    assert shape == (32, 1)
    opt = optimizers.adam(0.02)
    loss = lambda p, key: jnp.mean((apply(p, x, rng=key) - x**2) ** 2)

    @polyax.jit
    def step(i: Any, state: Any) -> Any:
        value, grads = polyax.value_and_grad(loss)(opt.params_fn(state), random.fold_in(KEY, i))
        return value, opt.update_fn(i, grads, state)

    state, values = opt.init_fn(params), []
    for i in range(60):
        value, state = step(i, state)
        values.append(float(value))
    assert np.mean(values[-5:]) < 0.3 * values[0]
