"""Arrays on several devices, looked at on each of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import polyax


def close_everywhere(got: Any, expected: Any, rtol: float, atol: float = 0.0) -> None:
    """Each device has its part of ``expected``. Of parts that should be the same, ``np.asarray`` shows but one."""
    np.testing.assert_allclose(_plain(got), _plain(expected), rtol, atol)
    if isinstance(got, polyax.Array):
        whole = np.broadcast_to(_plain(expected), got.shape)
        for shard in got.addressable_shards:
            np.testing.assert_allclose(
                _plain(shard.data), whole[shard.index], rtol, atol, err_msg=f"on {shard.device}, of {got.sharding}"
            )


def _plain(x: Any) -> np.ndarray:
    """In a dtype of NumPy's own."""
    found = np.asarray(x)
    return found if found.dtype.kind in "biufc" and found.dtype.itemsize > 2 else found.astype(np.complex128)
