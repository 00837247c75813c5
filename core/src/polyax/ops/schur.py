"""The Schur form: a square matrix in an orthonormal basis where it is upper triangular."""

from __future__ import annotations

from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.matrices import check_matrix, leading_batch, leading_factors

schur_p = Primitive("schur", multiple_results=True)
schur_p.batch, schur_p.factors = leading_batch(schur_p), leading_factors(schur_p)
schur_p.never("jvp", "the derivative of the Schur form is not known here")
schur_p.never("transpose", "schur is not linear")


def schur(
    x: Any, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable: Any = None
) -> list[Any]:
    """``T`` and unitary ``Z`` with ``Z T Z^H = x``; a real ``T`` has blocks of two rows for complex eigenvalues.

    Raises:
      NotImplementedError: the eigenvalues are to be sorted.
    """
    if sort_eig_vals:
        raise NotImplementedError("schur with sort_eig_vals=True is not built")
    return schur_p.bind(
        x,
        compute_schur_vectors=bool(compute_schur_vectors),
        sort_eig_vals=False,
        select_callable=select_callable,
    )


@def_rule(schur_p, "abstract_eval")
def _schur_abstract(x: ShapedArray, *, compute_schur_vectors: bool, **_: Any) -> list[ShapedArray]:
    check_matrix("schur", x, square=True)
    return [x] * (1 + compute_schur_vectors)
