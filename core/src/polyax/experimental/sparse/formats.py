"""What goes for all formats: dense arrays of them, empty ones, diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.experimental.sparse.base import JAXSparse
from polyax.experimental.sparse.bcoo import BCOO
from polyax.experimental.sparse.bcsr import BCSR
from polyax.experimental.sparse.composed import composed
from polyax.experimental.sparse.coo import COO
from polyax.experimental.sparse.csr import CSC, CSR
from polyax.experimental.sparse.layout import concrete
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten


def _todense(*bufs: Any, tree: PyTreeDef) -> list[Any]:
    arr = tree_unflatten(tree, bufs)
    return [arr.todense() if isinstance(arr, JAXSparse) else arr]


todense_p = composed("todense", _todense)


def todense(arr: Any) -> Any:
    """The dense array that ``arr`` stands for; itself, if it is dense."""
    bufs, tree = tree_flatten(arr)
    return todense_p.bind1(*bufs, tree=tree)


def empty(
    shape: Sequence[int], dtype: Any = None, index_dtype: Any = "int32", sparse_format: str = "bcoo", **kwds: Any
) -> Any:
    """A sparse array without stored elements.

    Args:
      sparse_format: 'bcoo', 'bcsr', 'coo', 'csr' or 'csc'.
      kwds: what the format takes besides, as ``n_batch``, ``n_dense`` and ``nse``.

    Raises:
      ValueError: there is no such format.

    >>> empty((3, 4))
    BCOO(float32[3, 4], nse=0)
    """
    formats = {"bcsr": BCSR, "bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}
    if sparse_format not in formats:
        raise ValueError(f"sparse_format={sparse_format!r} not recognized; must be one of {list(formats)}")
    return formats[sparse_format]._empty(tuple(shape), dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> Any:
    """The matrix of ``N`` rows and ``M`` columns with ones along a diagonal.

    Args:
      M: as many as rows, by default.
      k: which diagonal: above the main one if positive, below it if negative.
      sparse_format: 'bcoo', 'coo', 'csr' or 'csc'.
      kwds: what the format takes besides.

    >>> eye(3, k=1).todense().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    formats = {"bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}
    rows, cols, k = (concrete(x, "eye") for x in (N, N if M is None else M, k))
    return formats[sparse_format]._eye(N=rows, M=cols, k=k, dtype=dtype, index_dtype=index_dtype, **kwds)
