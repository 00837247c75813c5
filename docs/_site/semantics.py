"""Writes ``docs/semantics.md``: what every primitive computes, from the library's docstrings, the table of scalar
operations, and the cases of the suite. ``make snapshot`` does so."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import polyax
from links import ROOT
from polyax import lax
from polyax.backend import walk_eqns
from polyax.ir.primitive import PRIMITIVES, Primitive
from polyax_conformance.specs.primitives.table import CASES
from polyax_kernels.ir.scalars import TABLE

PAGE = ROOT / "docs/semantics.md"
HEAD = """# Semantics of primitives

What a backend is told to compute, primitive by primitive; for authors of engines that take whole programs, and of
lowerings ([authors](authors.md)). `make snapshot` writes this page from the library's docstrings, the table of scalar
operations and the cases of the suite. What it leaves open is defined by the reference backend, in NumPy.

What holds for all of them:

* Shapes and dtypes of results stand in the equation (`eqn.outvars`). Operands have the types that it says: nothing is
  promoted or broadcast but scalars that are written in the program.
* Integer division by zero gives -1, and its remainder the dividend; shifts past the width give 0, or the sign; integers
  wrap.
* Casts of floats to integers are cut toward zero and saturate; NaN gives 0. Those to narrower integers wrap.
* NaN wins in `max`, `min`, `argmax` and `argmin`, which give the first of equal ones; -0 is less than +0 in `max` and
  `min`, and equal to it in comparisons. `sort` puts NaN last, and keeps the order of equal keys if it is asked to.
* Indices out of bounds: `dynamic_slice` and `dynamic_update_slice` move the whole slice inside; `gather` and `scatter`
  do as their `mode` says.
* Sums may be made in any order; results of 16-bit floats are rounded once.
* Numbers below the least normal one are kept, as NumPy keeps them, where the device has them; on processors XLA makes
  zeros of them. Some processors take a hundred times as long for an operation that gives one.

The last columns: the parameters, and the dtypes for which kernels have it as one scalar operation.
"""
ELSEWHERE = {
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "not": "bitwise_not", "while": "while_loop",
    "jit": "", "cond": "cond",
}  # fmt: skip
WORDS = {
    "and": "Elementwise and of bits, or of booleans.",
    "or": "Elementwise or of bits, or of booleans.",
    "xor": "Elementwise exclusive or of bits, or of booleans.",
    "not": "Elementwise complement of bits, or of booleans.",
    "eq_to": "Elementwise ``x == y`` in the total order of floats, in which NaN equals itself and -0 is less than +0.",
    "lt_to": "Elementwise ``x < y`` in the total order of floats.",
    "le_to": "Elementwise ``x <= y`` in the total order of floats.",
    "name": "The operand, with a name for policies of ``checkpoint``.",
    "jit": "Calls ``jaxpr``.",
    "closed_call": "Calls ``call_jaxpr``.",
    "call": "Calls ``call_jaxpr``.",
    "remat2": "Calls ``jaxpr``; what it computes isn't merged with equal equations outside.",
    "custom_jvp_call": "Calls ``call_jaxpr``; its derivative is somebody's own.",
    "custom_vjp_call": "Calls ``call_jaxpr``; its derivative is somebody's own.",
    "custom_vmap_call": "Calls ``call_jaxpr``; how it is mapped is somebody's own.",
    "linear_call": "Calls ``callee``, a linear function whose transpose is somebody's own.",
    "remat_opt": "Calls ``forward``.",
    "while": "Applies ``body_jaxpr`` to the carries as long as ``cond_jaxpr`` of them is true; constants come first.",
    "pure_callback": "Calls a function of Python, whose results have the types of ``result_avals``.",
    "io_callback": "Calls a function of Python, each time and, if ``ordered``, in order.",
    "debug_callback": "Calls a function of Python that gives nothing.",
    "debug_print": "Prints its operands.",
    "cholesky": "The lower triangle ``L`` with ``L @ L^H`` the operand; NaN if that isn't positive definite.",
    "triangular_solve": "``x`` with ``a @ x = b`` or, if not ``left_side``, ``x @ a = b``, where ``a`` is triangular.",
    "lu": "LU with partial pivoting: both factors in one matrix, the pivots, and the permutation.",
    "qr": "``Q`` and ``R``, with ``Q`` square if ``full_matrices``.",
    "eigh": "Eigenvectors and eigenvalues of Hermitian matrices, in ascending order.",
    "eig": "Eigenvalues and eigenvectors of any matrices, all complex.",
    "svd": "Singular values in descending order, and both factors if ``compute_uv``.",
    "schur": "The Schur form, and the vectors if they are asked for.",
    "hessenberg": "The Hessenberg form, and the reflectors that lead to it.",
    "tridiagonal": "The tridiagonal form of Hermitian matrices, and the reflectors that lead to it.",
    "householder_product": "The product of the reflectors ``I - tau v v^H``.",
    "geqrf": "``R`` and the reflectors of a QR decomposition in one matrix, and their factors.",
    "ormqr": "The product of a matrix with the ``Q`` of ``geqrf``.",
    "threefry2x32": "Two words of random bits for two of a key and two of a counter, by Threefry with 20 rounds.",
    "reduce_window_sum": "The sum of each window.",
    "reduce_window_max": "The maximum of each window.",
    "reduce_window_min": "The minimum of each window.",
    "select_and_gather_add": "Of each window, the element of one operand where the other has its extremum.",
    "select_and_scatter_add": "Adds each source element where its window has its extremum.",
    "reduce_scatter": "The sum over all programs along the named axes, of which each gets a part.",
    "psum_invariant": "``psum``, whose result is the same along the named axes.",
    "cholesky_update": "The Cholesky factor of ``R^H @ R + w w^H``.",
    "symmetric_product": "``alpha * a @ a^T + beta * c``.",
    "linear_recurrence": "``y[i] = a[i] * y[i - 1] + b[i]`` along ``axis``, from the last on if ``reverse``.",
    "lu_pivots_to_permutation": "The permutation that the pivots of ``lu`` make.",
    "tridiagonal_solve": "``x`` with ``a @ x = b``, where ``a`` is tridiagonal.",
    "platform_index": "The number of the branch that is for the platform; settled before anything is compiled.",
}
INWARD = "It is gone before a program reaches a device."


NAMES = {p.name for p in PRIMITIVES}
"""The library's; what is imported later may make more."""


def page() -> str:
    """The whole page."""
    rows = sorted(map(row, (p for p in PRIMITIVES if p.name in NAMES)))
    table = [
        "| primitive | what it computes | parameters | scalar |",
        "|---|---|---|---|",
        *rows,
    ]
    return "\n".join([HEAD, *table, ""])


def row(p: Primitive) -> str:
    names = ", ".join(f"`{n}`" for n in parameters().get(p.name, ()))
    return f"| {' | '.join([f'`{p.name}`', meaning(p), names, dtypes(p.name)])} |"


def meaning(p: Primitive) -> str:
    function: Any = getattr(lax, ELSEWHERE.get(p.name, p.name.replace("-", "_")), None)
    text = WORDS.get(p.name) or (inspect.getdoc(function) or "" if callable(function) else "")
    first = " ".join(text.split("\n\n")[0].split()) or INWARD
    return first.replace("``", "`").replace("|", "\\|")


def dtypes(name: str) -> str:
    """Those that the table of scalar operations has it for, by their kinds."""
    kinds = {"b": "bool", "i": "integers", "u": "integers", "f": "floats", "V": "floats"}
    return ", ".join(sorted({kinds[d.kind] for d in TABLE[name].dtypes})) if name in TABLE else ""


@functools.cache
def parameters() -> dict[str, list[str]]:
    """Of the primitives that the suite's cases use."""
    with polyax.enable_x64(True):
        programs = [polyax.make_jaxpr(case.fun)(*case.args) for case in CASES.values()]
    return {eqn.primitive.name: sorted(eqn.params) for p in programs for eqn in walk_eqns(p.jaxpr)}


if __name__ == "__main__":
    PAGE.write_text(page())
