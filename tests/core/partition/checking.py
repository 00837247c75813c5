"""What tests of the partitioner share: a small mesh, arrays, and programs compared with those of one device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fuzz.checks import assert_close

import polyax
from polyax.meshes.axes import Axes
from polyax.partition.partition import Partitioned
from support.meshed import check_blocks, partitioned

MESH: Axes = (("x", 2), ("y", 2))
RNG = np.random.default_rng(0)
X, W, V = (RNG.normal(size=s).astype(np.float32) for s in ((8, 4), (4, 12), (12, 8)))
ROWS, COLUMNS, BOTH, NOT = (("x",), ()), ((), ("y",)), (("x",), ("y",)), ((), ())


def checked(fun: Callable[..., Any], args: Sequence[Any], ins: Any, outs: Any = None, axes: Axes = MESH) -> Partitioned:
    """The program on blocks, after each device has got its part of what one device gives."""
    found = partitioned(fun, args, axes, ins, outs)
    alone = polyax.jit(fun, device=polyax.devices("reference")[0])
    wanted = polyax.tree_util.tree_leaves(alone(*args))
    check_blocks(found, axes, args, [np.asarray(y) for y in wanted], assert_close)
    return found


def moves(found: Partitioned) -> list[tuple[str, tuple[Any, ...], int]]:
    return [(m.collective, m.axes, m.total) for m in found.moves]
