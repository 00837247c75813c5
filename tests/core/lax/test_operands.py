"""What functions of ``lax`` take and give, where JAX is strict."""

from __future__ import annotations

import numpy as np
import pytest

from polyax import lax


def test_there_is_a_stride_for_each_dimension():
    with pytest.raises(TypeError, match="strides must have length equal"):
        lax.slice(np.arange(5), (1,), (4,), (1, 1))


def test_factors_come_as_a_tuple():
    assert isinstance(lax.linalg.qr(np.eye(2, dtype=np.float32)), tuple)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_ranks_that_arrays_have_already_change_nothing(rank):
    assert lax.broadcast_to_rank(np.ones((2, 3), np.float32), rank).shape == (2, 3)
