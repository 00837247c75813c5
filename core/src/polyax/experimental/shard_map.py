"""``polyax.experimental.shard_map``: ``polyax.shard_map`` as it was called before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyax.api.shard_map import shard_map as _shard_map
from polyax.runtime.contract.tracebacks import api_boundary


@api_boundary
def shard_map(
    f: Callable[..., Any],
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
    auto: frozenset[Any] = frozenset(),
) -> Any:
    """``polyax.shard_map`` with ``check_rep`` for ``check_vma``, and in ``auto`` the axes that ``f`` isn't mapped over.

    >>> import numpy as np, polyax
    >>> from polyax.sharding import Mesh, PartitionSpec as P
    >>> print(shard_map(lambda x: 2 * x, Mesh(polyax.devices()[:1], "i"), P("i"), P("i"))(np.arange(3.0)))
    [0. 2. 4.]
    """
    axes = frozenset(mesh.axis_names) - auto if auto else frozenset()
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=axes, check_vma=check_rep)
