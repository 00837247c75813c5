"""Constraints on shardings under transformations: what they say of each dimension."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
from polyax.ir.jaxpr import walk_eqns
from polyax.meshes.axes import AbstractMesh
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import UNCONSTRAINED, OpenCuts, PartitionSpec, open_cuts
from polyax.ops.constraint import constrain, sharding_constraint_p

MESH = AbstractMesh((4, 2), ("x", "y"))


def constraints(fun: object, *args: object) -> list[OpenCuts]:
    eqns = [e for e in walk_eqns(polyax.make_jaxpr(fun)(*args).jaxpr) if e.primitive is sharding_constraint_p]
    return [open_cuts(e.params["sharding"].spec, e.invars[0].aval.ndim) for e in eqns]


def rows(x: object) -> object:
    return constrain(x, NamedSharding(MESH, PartitionSpec("x")))


def test_dimensions_left_out_are_not_cut() -> None:
    spec = PartitionSpec(("x", "y"), UNCONSTRAINED)
    x = np.ones((8, 2, 2), np.float32)
    assert constraints(lambda x: constrain(x, NamedSharding(MESH, spec)), x) == [(("x", "y"), None, ())]


def test_the_mapped_dimension_is_open() -> None:
    x = np.ones((4, 3, 2), np.float32)
    assert constraints(polyax.vmap(rows, in_axes=1), x) == [(("x",), None, ())]


def test_the_mapped_dimension_is_cut_as_vmap_says() -> None:
    x = np.ones((2, 4), np.float32)
    assert constraints(polyax.vmap(rows, spmd_axis_name="y"), x) == [(("y",), ("x",))]
    text = r"spmd_axis_name \('x',\) cannot appear in .* got spec P\('x',\), which names 'x'"
    with pytest.raises(ValueError, match=text):
        polyax.make_jaxpr(polyax.vmap(rows, spmd_axis_name="x"))(x)


def test_cotangents_lie_as_values_do() -> None:
    x = np.ones((4,), np.float32)
    assert constraints(polyax.grad(lambda x: rows(x * x).sum()), x) == [(("x",),), (("x",),)]


def test_ranks_must_fit() -> None:
    with pytest.raises(ValueError, match="only valid for values of rank at least 1"):
        polyax.make_jaxpr(rows)(np.float32(1))
