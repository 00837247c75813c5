"""``polyax.experimental.rnn``: LSTMs of several layers, in one or both directions, over sequences of unequal lengths.

All weights are one vector, in the order of cuDNN: of each layer and direction the matrices for its input and for its
state, then of each the two biases. The four gates (input, forget, cell, output) are the quarters of the rows.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import numpy as np

from polyax import nn, random
from polyax import numpy as jnp
from polyax.api import jit
from polyax.api.settings import default_matmul_precision
from polyax.ir import dtypes
from polyax.lax import lenient as lax

__all__ = [
    "get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_ref", "swap_lstm_gates", "unpack_lstm_weights",
]  # fmt: skip

Shape = tuple[int, ...]
Weights = dict[int, Any]


def _shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> list[tuple[Shape, Shape]]:
    """Those of the pairs in the vector: of matrices for each layer and direction, then of biases."""
    directions = 2 if bidirectional else 1
    rows = 4 * hidden_size
    matrices = [
        ((rows, input_size if n < directions else directions * hidden_size), (rows, hidden_size))
        for n in range(num_layers * directions)
    ]
    return matrices + [((rows,), (rows,))] * len(matrices)


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """The length of the vector of weights.

    >>> get_num_params_in_lstm(3, 4, 1, False)
    144
    """
    return sum(math.prod(s) for pair in _shapes(input_size, hidden_size, num_layers, bidirectional) for s in pair)


def init_lstm_weight(rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Any:
    """Random weights, uniform within 1 / sqrt(hidden_size) of zero: float32[number of parameters].

    Args:
      rng: a key.
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    bound = np.sqrt(1.0 / hidden_size)
    return random.uniform(rng, (count,), np.float32, -bound, bound)


def _parts(
    weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> list[tuple[Any, Any]]:
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    sizes = [math.prod(s) for pair in shapes for s in pair]
    if np.shape(weights) != (sum(sizes),):
        raise ValueError(
            f"the weights of an LSTM with input_size={input_size}, hidden_size={hidden_size}, num_layers={num_layers}, "
            f"bidirectional={bidirectional} have the shape ({sum(sizes)},), got {np.shape(weights)}"
        )
    cut = iter(jnp.split(weights, np.cumsum(sizes)[:-1]))
    return [(next(cut).reshape(a), next(cut).reshape(b)) for a, b in shapes]


def unpack_lstm_weights(
    weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[Weights, Weights, Weights, Weights]:
    """The vector of weights as ``W_ih, W_hh, b_ih, b_hh``, each by the number of the layer; with two directions, the
    layers forward have the even numbers, and those backward the odd ones.

    Raises:
      ValueError: the vector has another length.
    """
    parts = _parts(weights, input_size, hidden_size, num_layers, bidirectional)
    half = len(parts) // 2
    matrices, biases = parts[:half], parts[half:]
    return tuple(dict(enumerate(w[n] for w in kind)) for kind in (matrices, biases) for n in (0, 1))  # type: ignore


def swap_lstm_gates(weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Any:
    """The weights with the gates of cell and output, the last two quarters, in each other's place."""
    parts = _parts(jnp.asarray(weights), input_size, hidden_size, num_layers, bidirectional)
    return jnp.concatenate([_swapped(w).ravel() for pair in parts for w in pair])


def _swapped(w: Any) -> Any:
    first, second, third, fourth = jnp.split(w, 4)
    return jnp.concatenate([first, second, fourth, third])


def lstm(
    x: Any,
    h_0: Any,
    c_0: Any,
    weights: Any,
    seq_lengths: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> tuple[Any, Any, Any]:
    """An LSTM, on any device and differentiable.

    Args:
      x: the sequences, (batch, steps, input_size).
      h_0, c_0: the states at first, (layers * directions, batch, hidden_size).
      weights: all weights in one vector, as ``init_lstm_weight`` makes them.
      seq_lengths: how many steps each sequence has, int32[batch]; results behind its end are 0.
      dropout: must be 0.
      precision: of the products.

    Returns:
      The outputs, (batch, steps, directions * hidden_size), and both states at the end.

    Raises:
      NotImplementedError: there is dropout, or lengths aren't int32.
      ValueError: the vector has another length.
    """
    unpacked = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    sizes = input_size, hidden_size, num_layers, dropout, bidirectional
    with nullcontext() if precision is None else default_matmul_precision(precision):
        return lstm_ref(x, h_0, c_0, *unpacked, seq_lengths, *sizes)


@jit(static_argnums=(8, 9, 10, 11, 12))
def lstm_ref(
    x: Any,
    h_0: Any,
    c_0: Any,
    W_ih: Weights,
    W_hh: Weights,
    b_ih: Weights,
    b_hh: Weights,
    seq_lengths: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Any, Any, Any]:
    """``lstm``, of weights that ``unpack_lstm_weights`` gives."""
    _check(seq_lengths, dropout)
    directions = 2 if bidirectional else 1
    inside = (jnp.arange(x.shape[1])[:, None] < seq_lengths)[..., None]
    sequence = jnp.swapaxes(x, 0, 1)
    states = []
    for n in range(0, num_layers * directions, directions):
        outputs = []
        for d in range(n, n + directions):
            weights = W_ih[d], W_hh[d], b_ih[d] + b_hh[d]
            state, y = _layer(sequence, (h_0[d], c_0[d]), weights, inside, backward=d > n)
            states.append(state)
            outputs.append(y)
        sequence = jnp.concatenate(outputs, -1)
    h_n, c_n = (jnp.stack(parts) for parts in zip(*states, strict=True))
    return jnp.swapaxes(sequence, 0, 1), h_n, c_n


def _check(seq_lengths: Any, dropout: float) -> None:
    if seq_lengths.dtype != np.int32:
        raise NotImplementedError(f"`seq_lengths` can only be int32, got {dtypes.full_name(seq_lengths.dtype)}")
    if dropout != 0.0:
        raise NotImplementedError(f"dropout={dropout} isn't built in LSTMs; drop parts of x, or of what they return")


def _layer(x: Any, state: Any, weights: Any, inside: Any, backward: bool) -> tuple[Any, Any]:
    """One layer in one direction: its last state, and its outputs. States stay as they are behind the ends of
    sequences, so that backwards it is there that they begin."""
    of_input, of_state, bias = weights

    def step(state: Any, given: Any) -> tuple[Any, Any]:
        h, c = state
        from_input, here = given
        i, f, g, o = jnp.split(from_input + h @ of_state.T, 4, axis=-1)
        new_c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        new_h = nn.sigmoid(o) * jnp.tanh(new_c)
        return (jnp.where(here, new_h, h), jnp.where(here, new_c, c)), jnp.where(here, new_h, 0)

    return lax.scan(step, state, (x @ of_input.T + bias, inside), reverse=backward)
