"""LSTMs against a loop over cells in NumPy, and a vector of weights recorded from JAX."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.experimental import rnn
from polyax.testing.gradients import check_grads

SIZES = 3, 4, 2
LENGTHS = np.array([5, 2], np.int32)


@pytest.fixture(scope="module", params=[False, True], ids=["one direction", "both directions"])
def case(request):
    rng = np.random.default_rng(0)
    bidirectional = request.param
    layers = SIZES[2] * (2 if bidirectional else 1)
    weights = rng.normal(size=rnn.get_num_params_in_lstm(*SIZES, bidirectional)).astype(np.float32) / 2
    x = rng.normal(size=(2, 5, 3)).astype(np.float32)
    h, c = rng.normal(size=(2, layers, 2, 4)).astype(np.float32)
    return (x, h, c, weights, LENGTHS), bidirectional


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cells(x, h, c, weights, order):
    """The outputs of one layer for one sequence, with the steps in an order, and the states at the end."""
    of_input, of_state, first, second = weights
    y = np.zeros((len(x), h.size))
    for t in order:
        i, f, g, o = np.split(of_input @ x[t] + of_state @ h + first + second, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = y[t] = sigmoid(o) * np.tanh(c)
    return y, h, c


def loop(x, h_0, c_0, weights, lengths, bidirectional):
    unpacked = rnn.unpack_lstm_weights(weights.astype(np.float64), *SIZES, bidirectional)
    directions = 2 if bidirectional else 1
    h_n, c_n = np.zeros(h_0.shape), np.zeros(c_0.shape)
    outputs = []
    for b, n in enumerate(lengths):
        y = x[b]
        for layer in range(0, len(h_0), directions):
            parts = []
            for d in range(layer, layer + directions):
                own = [np.asarray(w[d], np.float64) for w in unpacked]
                order = range(n)[::-1] if d > layer else range(n)
                part, h_n[d, b], c_n[d, b] = cells(y, h_0[d, b], c_0[d, b], own, order)
                parts.append(part)
            y = np.concatenate(parts, -1)
        outputs.append(y)
    return np.stack(outputs), h_n, c_n


def test_is_a_loop_over_cells(case):
    args, bidirectional = case
    with polyax.enable_x64(True):
        expected = loop(*args, bidirectional)
    got = rnn.lstm(*args, *SIZES, 0.0, bidirectional)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    precise = rnn.lstm(*args, *SIZES, 0.0, bidirectional, precision="highest")
    np.testing.assert_allclose(precise[0], got[0], rtol=1e-5, atol=1e-6)


def test_derivatives(case):
    (x, h, c, weights, lengths), bidirectional = case

    def loss(x, h, c, weights):
        return rnn.lstm(x, h, c, weights, lengths, *SIZES, 0.0, bidirectional)

    check_grads(loss, (x, h, c, weights), order=1, modes=("rev",), rtol=2e-2, atol=2e-2)


def test_weights():
    with polyax.threefry_partitionable(True):
        w = rnn.init_lstm_weight(polyax.random.key(0), *SIZES, True)
    assert w.shape == (736,) and np.abs(w).max() <= 0.5
    W_ih, W_hh, b_ih, b_hh = rnn.unpack_lstm_weights(w, *SIZES, True)
    assert [m.shape for m in W_ih.values()] == [(16, 3), (16, 3), (16, 8), (16, 8)]
    assert {m.shape for m in W_hh.values()} == {(16, 4)} and {b.shape for b in (*b_ih.values(), *b_hh.values())} == {
        (16,)
    }
    assert b_hh[3].tolist() == w[-16:].tolist()


def test_gates_swapped():
    w = jnp.arange(rnn.get_num_params_in_lstm(*SIZES, False), dtype=np.float32)
    swapped = rnn.swap_lstm_gates(w, *SIZES, False)
    assert rnn.unpack_lstm_weights(swapped, *SIZES, False)[0][0][8].tolist() == [36, 37, 38]
    assert rnn.swap_lstm_gates(swapped, *SIZES, False).tolist() == w.tolist()


def test_bad_input(case):
    (x, h, c, weights, lengths), bidirectional = case
    with pytest.raises(ValueError, match=r"have the shape \(\d+,\), got"):
        rnn.lstm(x, h, c, weights[1:], lengths, *SIZES, 0.0, bidirectional)
    with pytest.raises(NotImplementedError, match="can only be int32, got float32"):
        rnn.lstm(x, h, c, weights, lengths.astype(np.float32), *SIZES, 0.0, bidirectional)
    with pytest.raises(NotImplementedError, match="dropout=0.5"):
        rnn.lstm(x, h, c, weights, lengths, *SIZES, 0.5, bidirectional)
