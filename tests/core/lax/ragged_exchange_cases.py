"""``ragged_all_to_all`` on two devices. Run by ``test_ragged_exchange.py``."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.sharding import Mesh
from polyax.sharding import PartitionSpec as P

pytestmark = pytest.mark.skipif(len(polyax.devices()) < 2, reason="run by test_ragged_exchange.py, with two devices")

OPERAND, OUTPUT = np.float32([1, 2, 2, 3, 4, 0]), np.full(8, -1, np.float32)
PLACES = [np.int32(x) for x in ([0, 1, 0, 1], [1, 2, 1, 1], [0, 0, 1, 2], [1, 1, 2, 1])]


def exchanged(operand, output, *places):
    mesh = Mesh(np.array(polyax.devices()[:2]), "x")
    f = lambda *args: lax.ragged_all_to_all(*args, axis_name="x")
    return polyax.jit(polyax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x")))(operand, output, *places)


def test_rows_are_sent():
    assert exchanged(OPERAND, OUTPUT, *PLACES).tolist() == [1, 3, -1, -1, 2, 2, 4, -1]
    rows = np.stack([OPERAND, 10 * OPERAND], 1)
    found = exchanged(rows, np.zeros((8, 2), np.float32), *PLACES)
    assert found[:, 1].tolist() == [10, 30, 0, 0, 20, 20, 40, 0]


def test_derivatives():
    weights = jnp.arange(1.0, 9)
    f = lambda operand, output: (exchanged(operand, output, *PLACES) * weights).sum()
    by_operand, by_output = polyax.grad(f, (0, 1))(OPERAND, OUTPUT)
    assert by_operand.tolist() == [1, 5, 6, 2, 7, 0] and by_output.tolist() == [0, 0, 3, 4, 0, 0, 0, 8]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({0: OPERAND.astype(np.int32)}, "must have the same dtype, got int32 and float32"),
        ({0: np.ones((6, 2), np.float32)}, "shapes must be equal, except for the outermost dimension"),
        ({2: PLACES[0].astype(np.float32)}, "input_offsets must be integer type"),
        ({5: np.zeros(2, np.int32)}, "recv_sizes must be rank 1, with a number for each of the 2 devices"),
    ],
)
def test_bad_input(change, text):
    args = dict(enumerate([OPERAND, OUTPUT, *PLACES])) | change
    with pytest.raises(ValueError, match=text):
        exchanged(*args.values())
