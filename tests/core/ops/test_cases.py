"""No primitive without its rules tested: each one occurs in the programs of some case, or the table says why not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import polyax
from polyax.ir.jaxpr import Jaxpr, sub_jaxprs
from polyax.ir.primitive import PRIMITIVES, Primitive
from polyax_conformance.specs.case import Case
from specs.table import CASES, WITHOUT_A_CASE

OWN = [p for p in PRIMITIVES if not p.name.startswith("test_")]


def primitives_of(jaxpr: Jaxpr) -> Iterator[Primitive]:
    for eqn in jaxpr.eqns:
        yield eqn.primitive
        for inner in sub_jaxprs(eqn):
            yield from primitives_of(inner.jaxpr)


def programs(case: Case) -> Iterator[Jaxpr]:
    yield polyax.make_jaxpr(case.fun)(*case.args).jaxpr
    for mode in case.modes:
        derivative, args = case.derivative(mode)
        yield polyax.make_jaxpr(derivative)(*args).jaxpr


@pytest.fixture(scope="module")
def occurring() -> set[Primitive]:
    with polyax.enable_x64(True), polyax.default_device(polyax.devices("reference")[0]):
        return {p for case in CASES.values() for program in programs(case) for p in primitives_of(program)}


@pytest.mark.parametrize("primitive", OWN, ids=str)
def test_each_primitive_has_a_case(primitive: Primitive, occurring: set[Primitive]) -> None:
    if primitive.name in WITHOUT_A_CASE:
        assert primitive not in occurring, f"{primitive} has a case: take it off WITHOUT_A_CASE"
    else:
        assert primitive in occurring, (
            f"{primitive} has no case in polyax_conformance/specs/primitives: add one, or say why not"
        )
