"""Products of matrices and vectors."""

from __future__ import annotations

from polyax_conformance.specs.spec import TableRow, normal

V = normal(3)
A = normal(2, 3)
B = normal(3, 2)

SPECS = [
    TableRow("dot vectors", lambda xp, x, y: xp.dot(x, y), (V, V)),
    TableRow("dot matrix vector", lambda xp, a, x: xp.dot(a, x), (A, V), sample=True),
    TableRow("matmul", lambda xp, a, b: a @ b, (A, B), sample=True),
    TableRow("matmul batched", lambda xp, a, b: xp.matmul(a, b), (normal(2, 2, 3), normal(2, 3, 2)), sample=True),
    TableRow("matmul broadcast", lambda xp, a, b: xp.matmul(a, b), (normal(2, 2, 3), B)),
    TableRow("product of transposes", lambda xp, a, b: a.T @ b.T, (A, B)),
    TableRow("vdot", lambda xp, x, y: xp.vdot(x, y), (A, A)),
    TableRow("outer", lambda xp, x, y: xp.outer(x, y), (V, normal(2))),
    TableRow("inner", lambda xp, x, y: xp.inner(x, y), (A, A)),
    TableRow("tensordot", lambda xp, x, y: xp.tensordot(x, y, axes=([1], [0])), (A, B)),
    TableRow("einsum", lambda xp, x, y: xp.einsum("ij,jk->ki", x, y), (A, B)),
    TableRow("einsum batched", lambda xp, x, y: xp.einsum("bij,bjk->bik", x, y), (normal(2, 2, 3), normal(2, 3, 2))),
    TableRow("quadratic form", lambda xp, x, a: xp.dot(x, a @ x), (V, normal(3, 3))),
    TableRow("layer", lambda xp, w, b, x: xp.tanh(x @ w + b), (B, normal(2), normal(4, 3)), sample=True),
]
