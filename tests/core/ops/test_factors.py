"""Each rule ``factors``, with equations cut by hand: what devices make of blocks is, put together, the whole result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import polyax
from polyax.ir.jaxpr import Jaxpr, Literal
from polyax.ir.primitive import PRIMITIVES, Primitive
from polyax_conformance.specs.case import Case
from specs.cutting import CASES as CUTTING
from specs.table import CASES, WITHOUT_A_CASE
from support.cutting import Equation, cut_by_hand, factor_sizes, types_of_blocks, ways_to_cut

CUT = [
    p for p in PRIMITIVES if p.factors is not None and p.name not in WITHOUT_A_CASE and not p.name.startswith("test_")
]
"""Those without a case have no values here: keys are cut as words, a user's own rules are tested with their door."""


def equations(program: Any, args: list[Any]) -> Iterator[Equation]:
    """The equations of a program, with the values that its arguments lead to."""
    jaxpr: Jaxpr = program.jaxpr
    values: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*program.consts, *args), strict=True))
    for eqn in jaxpr.eqns:
        ins = [a.val if isinstance(a, Literal) else values[a] for a in eqn.invars]
        yield Equation(eqn.primitive, tuple(ins), eqn.params)
        values.update(zip(eqn.outvars, eqn.apply(ins), strict=True))


def programs(case: Case) -> Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]:
    yield case.fun, case.args
    for mode in case.modes:
        yield case.derivative(mode)


@pytest.fixture(scope="module")
def occurring() -> dict[Primitive, dict[Any, Equation]]:
    """Of each primitive the equations of all cases and of their derivatives that differ in types or parameters."""
    found: dict[Primitive, dict[Any, Equation]] = {}
    with polyax.enable_x64(True), polyax.default_device(polyax.devices("reference")[0]):
        for case in (*CASES.values(), *CUTTING.values()):
            for fun, args in programs(case):
                program = polyax.make_jaxpr(fun)(*args)
                for equation in equations(program, polyax.tree.leaves(args)):
                    found.setdefault(equation.primitive, {})[equation.key] = equation
    return found


@pytest.fixture(autouse=True)
def float64_on_the_reference() -> Iterator[None]:
    with polyax.enable_x64(True), polyax.default_device(polyax.devices("reference")[0]):
        yield


@pytest.mark.parametrize("primitive", CUT, ids=str)
def test_parts_make_the_whole(primitive: Primitive, occurring: dict[Primitive, dict[Any, Equation]]) -> None:
    assert sum(map(check, occurring[primitive].values())), f"no case of {primitive} has anything that can be cut"


def check(equation: Equation) -> int:
    """Cuts the equation in all ways, of which there are so many."""
    known = equation.factors()
    if known is None:
        return 0
    want = equation.run()
    sizes = factor_sizes(known, [np.shape(x) for x in equation.args], [y.shape for y in want])
    ways = list(ways_to_cut(known, sizes))
    for cut in ways:
        for weak in (False, True):
            types = types_of_blocks(equation, known, sizes, cut, weak)
            for block, whole in zip(types, equation.types(weak), strict=True):
                assert block.update(shape=whole.shape) == whole, f"{equation.key} cut by {cut} gives {block}"
        for g, w in zip(cut_by_hand(equation, known, sizes, cut), want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-10, atol=1e-12, err_msg=f"{equation.key} cut by {cut}")
            assert g.dtype == w.dtype, f"{equation.key} cut by {cut} gives {g.dtype}, not {w.dtype}"
    return len(ways)
