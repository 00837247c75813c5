"""Every rule of every primitive and construct, on the reference backend in float64.

Derivatives to second order, by all combinations of modes, against finite differences; batching against a loop over
examples; compiled programs against eager execution. What the functions compute is tested in ``test_values``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import polyax
from polyax.ir.check import check_jaxpr
from polyax.test_util import check_grads
from polyax_conformance.specs.case import as_list, stack
from specs.table import CASES

EXAMPLES = 3

every_case = pytest.mark.parametrize("name", CASES)
DERIVATIVES = [(name, mode) for name, c in CASES.items() for mode in c.modes]
every_derivative = pytest.mark.parametrize(("name", "mode"), DERIVATIVES)


@pytest.fixture(autouse=True)
def float64_on_the_reference() -> Iterator[None]:
    with polyax.enable_x64(True), polyax.default_device(polyax.devices("reference")[0]):
        yield


@every_derivative
def test_first_derivatives(name: str, mode: str) -> None:
    case = CASES[name]
    check_grads(case.of_inexact, case.inputs, 1, (mode,))


@every_derivative
def test_second_derivatives(name: str, mode: str) -> None:
    case = CASES[name]
    check_grads(*case.derivative(mode), 1, case.again)


def agree(got: Any, want: Any) -> None:
    for g, w in zip(as_list(got), as_list(want), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-10, atol=1e-12)


def loop(fun: Callable[..., Any], args: Sequence[Any], axes: Sequence[int | None]) -> list[np.ndarray]:
    """What ``fun`` gives for each example, stacked."""
    rows = [as_list(fun(*(x if a is None else np.take(x, i, a) for x, a in zip(args, axes)))) for i in range(EXAMPLES)]
    return [np.stack([np.asarray(e) for e in column]) for column in zip(*rows)]


def check_vmap(fun: Callable[..., Any], args: Sequence[Any], axes: Sequence[int | None]) -> None:
    args = [x if a is None else stack(x, a) for x, a in zip(args, axes)]
    agree(polyax.vmap(fun, in_axes=tuple(axes))(*args), loop(fun, args, axes))


@every_case
def test_vmap_is_a_loop(name: str) -> None:
    case = CASES[name]
    n = len(case.args)
    each = [[0 if i == j else None for i in range(n)] for j in range(n)] if n > 1 else []
    for axes in (*each, [0] * n, [np.ndim(x) for x in case.args]):
        check_vmap(case.fun, case.args, axes)


@every_derivative
def test_vmap_of_derivatives_is_a_loop(name: str, mode: str) -> None:
    derivative, (xs, directions) = CASES[name].derivative(mode)
    n, m = len(xs), len(directions)
    for axes in ([0] * (n + m), [None] * n + [0] * m):  # the latter as in jacfwd and jacrev
        check_vmap(lambda *args: derivative(args[:n], list(args[n:])), [*xs, *directions], axes)


@every_case
def test_jit_is_eager(name: str) -> None:
    case = CASES[name]
    agree(polyax.jit(case.fun)(*case.args), case.fun(*case.args))


@every_derivative
def test_jit_of_derivatives_is_eager(name: str, mode: str) -> None:
    derivative, args = CASES[name].derivative(mode)
    agree(polyax.jit(derivative)(*args), derivative(*args))


@every_derivative
def test_programs_are_well_typed(name: str, mode: str) -> None:
    derivative, args = CASES[name].derivative(mode)
    again = lambda *args: polyax.jvp(derivative, args, args)
    mapped = polyax.vmap(derivative, in_axes=None, axis_size=2)
    for program in (derivative, again, mapped):
        check_jaxpr(polyax.make_jaxpr(program)(*args).jaxpr)
