"""Rearrangements: each element goes somewhere, so derivatives and batches follow its way."""

from __future__ import annotations

from polyax_conformance.specs.spec import TableRow, integers, normal

X = normal(2, 3)
DEEP = normal(2, 3, 2)

SPECS = [
    TableRow("reshape", lambda xp, x: xp.reshape(x, (3, 2)), (X,)),
    TableRow("ravel", lambda xp, x: x.ravel(), (X,)),
    TableRow("transpose", lambda xp, x: x.T * 2, (X,), sample=True),
    TableRow("transpose axes", lambda xp, x: xp.transpose(x, (2, 0, 1)), (DEEP,)),
    TableRow("swapaxes", lambda xp, x: xp.swapaxes(x, 0, 2), (DEEP,)),
    TableRow("moveaxis", lambda xp, x: xp.moveaxis(x, 0, -1), (DEEP,)),
    TableRow("expand_dims", lambda xp, x: xp.expand_dims(x, 1), (X,)),
    TableRow("squeeze", lambda xp, x: xp.squeeze(x, 1), (normal(2, 1, 3),)),
    TableRow("broadcast_to", lambda xp, x: xp.broadcast_to(x, (4, 3)), (normal(3),)),
    TableRow("concatenate", lambda xp, x, y: xp.concatenate([x, y], axis=1), (X, normal(2, 2)), sample=True),
    TableRow("stack", lambda xp, x, y: xp.stack([x, y], axis=1), (X, X)),
    TableRow("split", lambda xp, x: xp.split(x, 3, axis=1)[1], (X,)),
    TableRow("flip", lambda xp, x: xp.flip(x, 1), (X,)),
    TableRow("roll", lambda xp, x: xp.roll(x, 1, axis=1), (X,)),
    TableRow("tile", lambda xp, x: xp.tile(x, (2, 2)), (X,)),
    TableRow("repeat", lambda xp, x: xp.repeat(x, 2, axis=0), (X,)),
    TableRow("pad", lambda xp, x: xp.pad(x, ((1, 0), (0, 2))), (X,)),
    TableRow("diagonal by mask", lambda xp, x: x * xp.eye(3), (normal(3, 3),)),
    TableRow("slice", lambda xp, x: x[:, 1:], (X,), sample=True),
    TableRow("slice strided", lambda xp, x: x[::-1, ::2], (X,)),
    TableRow("index int", lambda xp, x: x[1], (X,)),
    TableRow("index new axis", lambda xp, x: x[:, None, ..., 0], (X,)),
    TableRow("index array", lambda xp, x, i: x[i], (normal(4, 2), integers(0, 4, 3)), sample=True),
    TableRow("index two arrays", lambda xp, x, i, j: x[i, j], (normal(4, 3), integers(0, 4, 5), integers(0, 3, 5))),
    TableRow("take", lambda xp, x, i: xp.take(x, i, axis=1), (normal(2, 4), integers(0, 4, 3))),
    TableRow(
        "take_along_axis", lambda xp, x, i: xp.take_along_axis(x, i, axis=1), (normal(2, 4), integers(0, 4, 2, 1))
    ),
    TableRow("sort", lambda xp, x: xp.sort(x, axis=1), (normal(2, 5),)),
    TableRow("argsort", lambda xp, x: xp.argsort(x, axis=1), (normal(2, 5),), differentiable=False),
]
