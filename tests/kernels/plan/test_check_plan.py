"""The checker of plans: what is written over too early, read too early or not computed is found by step and value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import traced

import polyax.numpy as jnp
from polyax import config, lax
from polyax.debug import callback
from polyax.ir.errors import InternalError
from polyax_kernels.ir.expr import consing
from polyax_kernels.ir.graph import Graph, LoopNode
from polyax_kernels.ir.limits import DEFAULT
from polyax_kernels.plan.check import check_plan
from polyax_kernels.plan.plan import CallStep, CopyStep, KernelStep, LoopStep, Plan, Ref
from polyax_kernels.plan.planner import make_plan

X = np.arange(12, dtype="f4").reshape(3, 4)


def planned(fun: Callable[..., Any], *args: np.ndarray, donated: Sequence[bool] = ()) -> tuple[Plan, Graph]:
    """The plan of a program without fusion, which is right, and what it was made of."""
    with config.override(checks=True), consing():
        graph = NumpyKernelBackend(fused=False).graph(traced(fun, args))
        plan = make_plan(graph, donated)
        check_plan(plan, graph, donated)
    return plan, graph


def fault(plan: Plan, graph: Graph, donated: Sequence[bool] = (), **limits: int) -> str:
    with consing(), pytest.raises(InternalError) as found:
        check_plan(plan, graph, donated, replace(DEFAULT, **limits))
    return str(found.value)


def moved(step: Any, old: Ref, new: Ref) -> Any:
    """The step with another place."""
    return replace(step, operands=tuple(new if ref == old else ref for ref in step.operands))


def three(x: Any, y: Any) -> Any:
    """Two values are in the arena at once."""
    return jnp.sin(x) @ jnp.cos(y).T + jnp.tan(x)[:, :3]


def chain(x: Any) -> Any:
    return jnp.tan(jnp.cos(jnp.sin(x)))


def swap(plan: Plan, a: int, b: int) -> None:
    for of in (plan.steps, plan.made):
        of[a], of[b] = of[b], of[a]


def drop(plan: Plan, n: int) -> None:
    del plan.steps[n], plan.made[n]


def test_values_that_overlap_in_the_arena() -> None:
    def fun(x):
        return jnp.sin(x) + jnp.cos(x)

    plan, graph = planned(fun, X)
    first, second = (step.operands[-1] for step in plan.steps[:2])
    assert {first.base, second.base} == {plan.arena} and first != second
    plan.steps[1] = moved(plan.steps[1], second, Ref(plan.arena, first.offset + 16))
    plan.steps[2] = moved(plan.steps[2], second, Ref(plan.arena, first.offset + 16))
    text = fault(plan, graph)
    assert "step 2 (add) looks for v1 (f32[3,4]) at arena, where v2 is since step 1 (cos)" in text


def test_swapped_steps() -> None:
    plan, graph = planned(chain, X)
    swap(plan, 0, 1)
    assert "step 0 (cos) looks for v1 (f32[3,4]) at arena, where nothing is" in fault(plan, graph)


def test_step_that_is_missing() -> None:
    plan, graph = planned(chain, X)
    drop(plan, 2)
    assert "the end of the program looks for v3 (f32[3,4]) at result0, where nothing is" in fault(plan, graph)


def set_column(x: Any, column: Any) -> Any:
    return lax.dynamic_update_slice(x, column, (0, 1))


def test_copy_before_an_update_that_is_missing() -> None:
    plan, graph = planned(set_column, X, X[:, :1])
    assert [type(step) for step in plan.steps] == [CopyStep, KernelStep]
    drop(plan, 0)
    text = fault(plan, graph)
    assert "step 0 (dynamic_update_slice) looks for v0 (f32[3,4]) at result0, where nothing is" in text


def test_input_that_is_overwritten() -> None:
    plan, graph = planned(set_column, X, X[:, :1])
    drop(plan, 0)
    plan.steps[0], plan.outputs = moved(plan.steps[0], Ref(2), Ref(0)), (0,)
    text = "step 0 (dynamic_update_slice) writes v4 (f32[3,4]) at input0, which must stay as it is"
    assert text in fault(plan, graph)
    plan.overwritten = frozenset((0,))
    assert text in fault(plan, graph)  # nobody has given it away
    with consing():
        check_plan(plan, graph, (True, False))


def test_donated_memory_is_written_to_by_who_reads_other_points_of_it() -> None:
    square = np.ones((4, 4), "f4")
    plan, graph = planned(lambda x: jnp.sin(x.T), square, donated=(True,))
    transpose, sin = plan.steps
    out = transpose.operands[1]
    plan.steps = [moved(transpose, out, Ref(0)), moved(sin, out, Ref(0))]
    plan.overwritten = frozenset((0,))
    assert "step 0 (transpose) writes v1 (f32[4,4]) at input0, where it still reads v0" in fault(plan, graph, (True,))


def test_block_that_is_copied_from_elsewhere() -> None:
    plan, graph = planned(lambda x, y: jnp.sin(x[1:]), X, X)
    copy = plan.steps[0]
    assert isinstance(copy, CopyStep)
    plan.steps[0] = replace(copy, source=replace(copy.source, offset=0))
    assert "step 0 (slice) looks for v0 (f32[3,4]) at input0" in fault(plan, graph)
    plan.steps[0] = replace(copy, source=replace(copy.source, base=1))
    assert "step 0 (slice) looks for v0 (f32[3,4]) at input1, where v1 is since the beginning" in fault(plan, graph)


def test_place_outside_of_its_base() -> None:
    plan, graph = planned(chain, X)
    plan.arena_bytes //= 2
    assert "writes v2 (f32[3,4]) at arena+64, and arena has 64 bytes" in fault(plan, graph)


def test_results_of_another_value() -> None:
    plan, graph = planned(lambda x: (jnp.sin(x), jnp.cos(x)), X)
    plan.outputs = plan.outputs[::-1]
    text = fault(plan, graph)
    assert "the end of the program looks for v1 (f32[3,4]) at result1, where v2 is since step 1 (cos)" in text


def loop(x: Any, y: Any) -> Any:
    """A carry with two places, and a constant that the turns read."""
    z = jnp.cos(y)
    return lax.scan(lambda c, _: (c[::-1] * 2 + z, None), jnp.sin(x), None, length=4)[0]


def loop_step(plan: Plan) -> tuple[int, LoopStep]:
    return next((n, step) for n, step in enumerate(plan.steps) if isinstance(step, LoopStep))


def test_scalars_that_have_changed() -> None:
    plan, graph = planned(lambda x: lax.scan(lambda c, _: (c * 2, None), 3.0, None, length=2)[0] + x, X)
    plan.literals = tuple(x + 1 for x in plan.literals)
    assert "(scan) looks for v" in fault(plan, graph) and "at scalar0, where nothing is" in fault(plan, graph)


def test_scratch_of_a_loop_over_what_its_turns_read() -> None:
    plan, graph = planned(loop, X, X)
    n, step = loop_step(plan)
    node, args, outs = plan.made[n]
    assert isinstance(node, LoopNode)
    constant = args[0]
    (scratch,) = {ref for ref in (*step.body.even, *step.body.odd) if ref and ref.base == plan.arena} - {*args, *outs}
    turned = [tuple(constant if ref == scratch else ref for ref in refs) for refs in (step.body.even, step.body.odd)]
    plan.steps[n] = replace(step, body=replace(step.body, even=turned[0], odd=turned[1]))
    assert f"step {n} (scan) works at arena" in fault(plan, graph) and "where it still reads v" in fault(plan, graph)


def test_plan_of_a_loop_that_is_wrong() -> None:
    plan, graph = planned(loop, X, X)
    n, step = loop_step(plan)
    drop(step.body.plan, len(step.body.plan.steps) - 1)
    assert f"within step {n} (scan), the end of the program looks for v" in fault(plan, graph)


def test_effects_in_another_order() -> None:
    def fun(x):
        callback(print, x)
        callback(len, x)
        return x + 1

    plan, graph = planned(fun, X)
    swap(plan, *(n for n, step in enumerate(plan.steps) if isinstance(step, CallStep)))
    text = fault(plan, graph)
    assert "effects are debug_callback (equation 1), debug_callback (equation 0) in this order, not" in text


def test_too_many_operands() -> None:
    with config.override(checks=True), consing():
        graph = NumpyKernelBackend().graph(traced(lambda x, y, z: x + y * z, [X, X, X]))
        plan = make_plan(graph)
        check_plan(plan, graph, (), DEFAULT)
    assert "has 4 operands, and 3 are the limit" in fault(plan, graph, operands=3)


def test_plans_of_updates_aliases_and_empty_arrays_are_right() -> None:
    def fun(x, row):
        y = jnp.reshape(jnp.sin(x), (4, 3)).at[0].set(1.0)
        pieces = [x[:0], *[x[k % 3][None] * k for k in range(10)], row[None]]
        return y, jnp.concatenate(pieces), jnp.cumsum(x, 0), x.T, x, jnp.zeros((0, 3)) + 1

    for donated in ((False, False), (True, True)):
        planned(fun, X, X[0], donated=donated)


def test_equal_numbers_are_one_value_however_they_are_written() -> None:
    def loops(x: Any) -> Any:
        numbers = 0.0, np.float32(0.0), jnp.float32(0.0)
        return lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * 2 + c[2], c[1] + 1, *c[2:]), (x, *numbers))

    _, graph = planned(loops, X)
    assert list(graph.literals.values()) == [0.0] and {type(x) for x in graph.literals.values()} == {float}
