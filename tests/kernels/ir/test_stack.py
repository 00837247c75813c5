"""Stacked kernels: equal to several kernels, interpreted and as C; refusals; what scratch and time they take."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kernels.programs import assert_same, compiled, launched, planned, traced
from kernels.rows import (
    PROGRAMS,
    SHAPES,
    NumpyStacking,
    Separate,
    Stacking,
    layer_norm,
    normal,
    softmax_and_total,
    stages,
)

import polyax.numpy as jnp
from polyax import nn
from polyax.ir.garbage import collection_paused
from polyax_hello_c.backend import HelloCBackend
from polyax_kernels.ir.edits import common_rows, merge, stack, why_not_inline, why_not_stack
from polyax_kernels.ir.expr import consing
from polyax_kernels.ir.graph import eliminate_dead
from polyax_kernels.ir.limits import REALS, Limits
from polyax_kernels.plan.plan import KernelStep
from support.calls import calls


class CStacking(Stacking, HelloCBackend):
    pass


def outcome(backend, fun, x):
    closed = traced(fun, [x])
    return launched(backend, compiled(backend, closed), closed, [x])


def graph_of(fun, *args, backend=None):
    return (backend or NumpyStacking()).graph(traced(fun, args))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("fun", PROGRAMS, ids=lambda f: f.__name__)
def test_stacked_is_unstacked_under_numpy(fun, shape) -> None:
    x = normal(*shape)
    assert_same(outcome(NumpyStacking(), fun, x), outcome(Separate(), fun, x))


@pytest.mark.parametrize("fun", PROGRAMS, ids=lambda f: f.__name__)
def test_stacked_is_unstacked_in_c(fun) -> None:
    x, backend = normal(3, 50), CStacking("hello_c")
    got = outcome(backend, fun, x)
    backend.stacking = False
    assert_same(got, outcome(backend, fun, x))


class Wide(NumpyStacking):
    limits = Limits(dtypes=REALS)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_dtypes(dtype) -> None:
    x, backend = (normal(4, 30) * 9).astype(dtype), Wide()
    got = outcome(backend, nn.softmax, x)
    backend.stacking = False
    assert_same(got, outcome(backend, nn.softmax, x))


@pytest.mark.parametrize(
    ("fun", "found"),
    [
        (nn.softmax, [2]),  # exp(x - max) into scratch; its quotient by the sum
        (nn.log_softmax, [1]),  # nothing is kept of a row: its sum and maximum are known before the loop
        (layer_norm, [2]),  # mean and deviation, which are also results; the row
        (softmax_and_total, [3]),  # the logarithm of the total is stored once per row
    ],
)
def test_how_many_stages(fun, found) -> None:
    with consing():
        assert stages(graph_of(fun, normal(5, 100))) == found


def test_a_row_of_scratch_is_the_row_alone() -> None:
    plan = planned(NumpyStacking(), traced(nn.softmax, [normal(3, 5, 100)]))
    (step,) = [s for s in plan.steps if isinstance(s, KernelStep)]
    assert [o.shape for o in step.kernel.operands if o.role == "local"] == [(100,)]
    assert [a.extent for a in step.kernel.grid] == [15]  # the outer axes of all stages are one
    assert step.bytes_moved == 2 * 4 * 3 * 5 * 100


def softmax_nodes(*shape: int, axis: int = -1):
    backend = Separate()
    return backend.graph(traced(lambda x: nn.softmax(x, axis=axis), [normal(*shape)])).nodes


def test_refusals() -> None:
    with consing():
        exp, div = softmax_nodes(4, 300)
        assert common_rows(exp, div) == 4
        assert why_not_stack(exp, div, replace(Limits(), local_bytes=4 * 300)) is None
        for limits, reason in (
            ({"local_bytes": 4 * 300 - 1}, "a row would need 1200 bytes of scratch, more than 1199"),
            ({"kernel_nodes": 10}, "exceed 10 operations"),
            ({"operands": 1}, "exceed 1 operands"),
        ):
            assert reason in (why_not_stack(exp, div, replace(Limits(), **limits)) or "")
        assert "doesn't read" in (why_not_stack(div, exp) or "")
        both = stack(exp, div)
        assert why_not_inline(both, div) == f"{both.name} computes whole rows"


def test_columns_are_refused_where_all_of_them_do_not_fit() -> None:
    with consing():
        *_, total, div = [n for n in softmax_nodes(300, 400, axis=0) if n.alias is None]
        assert common_rows(total, div) == 1
        exp = softmax_nodes(300, 400, axis=0)[1]
        assert "bytes of scratch" in (why_not_stack(exp, total) or "")


def test_other_nodes_are_refused() -> None:
    def updated(x):
        return jnp.exp(x - x.max(-1, keepdims=True)).at[0].set(0.0), x.reshape(-1)

    with consing():
        nodes = Separate().graph(traced(updated, [normal(4, 30)])).nodes
        update = next(n for n in nodes if n.updates is not None)
        alias = next(n for n in nodes if n.alias is not None)
        assert "stores elsewhere" in (why_not_stack(nodes[0], update) or "")
        assert "another shape" in (why_not_stack(nodes[0], alias) or "")


def test_results_that_nobody_reads_are_dropped() -> None:
    with consing():
        graph = graph_of(softmax_and_total, normal(5, 100))
        (node,) = [n for n in graph.nodes if n.alias is None]
        assert len(node.outs) == 3
        graph.outputs = graph.outputs[1:2]  # the logarithm of the total
        (left,) = [n for n in eliminate_dead(graph).nodes if n.alias is None]
        assert len(left.stores) < len(node.stores)


def test_cost_is_linear_in_the_stages() -> None:
    def chain(x, n):
        for _ in range(n):
            x = x / x.sum(-1, keepdims=True)
        return x

    def calls_of_merging(n):
        backend = NumpyStacking()
        backend.limits = replace(Limits(), kernel_nodes=10**6, local_bytes=10**6)
        (kernel,) = backend.graph(traced(lambda x: chain(x, n), [normal(4, 30)])).nodes
        other = softmax_nodes(4, 30)[0]
        assert len(kernel.stages) == n - 1

        return calls(lambda: merge(kernel, other))

    with consing(), collection_paused():
        few, many = calls_of_merging(20), calls_of_merging(80)
    assert 3 * few < many < 5 * few, "four times as many stages"
