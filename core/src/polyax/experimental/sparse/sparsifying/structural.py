"""Rules of primitives that move elements or add them up."""

from __future__ import annotations

from typing import Any

from polyax.experimental.sparse import arithmetic, bcoo, bcsr, dots, pieces, shapes
from polyax.experimental.sparse.formats import todense_p
from polyax.experimental.sparse.sparsifying.table import sparse_rule, sparse_rules_bcoo, sparse_rules_bcsr
from polyax.extend.core import primitives as p

_BCOO = {
    p.broadcast_in_dim_p: shapes.bcoo_broadcast_in_dim,
    p.concatenate_p: lambda *xs, **params: pieces.bcoo_concatenate(xs, **params),
    p.conv_general_dilated_p: arithmetic.bcoo_conv_general_dilated,
    p.dot_general_p: dots.bcoo_dot_general,
    p.dynamic_slice_p: lambda x, *starts, slice_sizes: pieces.bcoo_dynamic_slice(x, starts, slice_sizes),
    p.gather_p: pieces.bcoo_gather,
    p.reshape_p: shapes.bcoo_reshape,
    p.rev_p: shapes.bcoo_rev,
    p.slice_p: pieces.bcoo_slice,
    p.squeeze_p: shapes.bcoo_squeeze,
}
_BCSR = {
    p.dot_general_p: bcsr.bcsr_dot_general,
    p.broadcast_in_dim_p: bcsr.bcsr_broadcast_in_dim,
    p.concatenate_p: lambda *xs, **params: bcsr.bcsr_concatenate(xs, **params),
}


def _listed(fun: Any) -> Any:
    return lambda *args, **params: [fun(*args, **params)]


sparse_rules_bcoo.update({primitive: _listed(fun) for primitive, fun in _BCOO.items()})
sparse_rules_bcsr.update({primitive: _listed(fun) for primitive, fun in _BCSR.items()})


@sparse_rule(p.transpose_p)
def _transpose(x: Any, *, permutation: Any) -> list[Any]:
    return [bcoo.bcoo_transpose(x, permutation=tuple(permutation))]


@sparse_rule(p.reduce_sum_p)
def _reduce_sum(x: Any, *, axes: Any, **_: Any) -> list[Any]:
    total = arithmetic.bcoo_reduce_sum(x, axes=axes)
    return [total if total.shape else total.data.sum(dtype=total.dtype)]


@sparse_rule(todense_p, bcsr=True)
def _todense(x: Any, *, tree: Any) -> list[Any]:
    return [x.todense()]
