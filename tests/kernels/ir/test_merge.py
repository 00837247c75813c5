"""Merged kernels: equal to separate ones, what they share is read once, and the reasons for refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernels.programs import traced
from kernels.rows import Separate, normal

import polyax.numpy as jnp
from polyax import nn
from polyax_kernels.emit.numpy import run
from polyax_kernels.ir.edits import merge, stack, why_not_merge
from polyax_kernels.ir.expr import consing
from polyax_kernels.ir.graph import Graph, KernelNode
from polyax_kernels.ir.limits import Limits
from polyax_kernels.plan.operands import finished


def kernels(fun, *args) -> tuple[Graph, list[KernelNode]]:
    graph = Separate().graph(traced(fun, args))
    return graph, [n for n in graph.nodes if isinstance(n, KernelNode) and n.alias is None]


def results(graph: Graph, node: KernelNode, *inputs: np.ndarray) -> dict[int, np.ndarray]:
    """What ``node`` computes; its operands are inputs of the program."""
    kernel, values = finished(graph, node)
    given = dict(zip(graph.inputs, inputs, strict=True))
    made = {v: np.zeros(graph.avals[v].shape, graph.avals[v].dtype) for v in node.outs}
    run(kernel, [(given | made)[v] for v in values])
    return made


def sines_and_sums(x):
    return [jnp.sin(x), x.sum(-1)]


@pytest.mark.parametrize("shape", [(5, 30), (7,), (2, 3, 4), (1, 6, 1), (2, 1)], ids=str)
def test_merged_is_separate(shape) -> None:
    x = normal(*shape)
    with consing():
        graph, (a, b) = kernels(lambda x: [jnp.sin(x), jnp.where(x > x.max(-1, keepdims=True) / 2, x, 0)], x)
        assert why_not_merge(a, b) is None
        both = merge(a, b)
        assert not both.stacked  # one of its elements can be inlined still
        got = results(graph, both, x)
        for node in (a, b):
            for v, want in results(graph, node, x).items():
                np.testing.assert_array_equal(got[v], want)


def test_what_both_read_is_loaded_once() -> None:
    with consing():
        _, (a, b) = kernels(lambda x, y: [jnp.sin(x) * y, jnp.cos(x) + y], normal(4, 6), normal(4, 6))
        both = merge(a, b)
        assert [len(access.places) for access in both.reads.values()] == [1, 1]
        assert both.weight == a.weight + b.weight


@pytest.mark.parametrize("swapped", [False, True])
def test_rows_beside_their_elements(swapped) -> None:
    x = normal(5, 30)
    with consing():
        graph, nodes = kernels(sines_and_sums, x)
        a, b = reversed(nodes) if swapped else nodes
        assert why_not_merge(a, b) is None
        both = merge(a, b)
        assert [axis.extent for axis in both.grid] == [5] and both.stacked
        got = [results(graph, both, x)[v] for v in graph.outputs]
        np.testing.assert_allclose(got[0], np.sin(x), rtol=1e-6)
        np.testing.assert_allclose(got[1], x.astype(np.float64).sum(-1), rtol=1e-5, atol=1e-5)  # sums may cancel


def test_stacked_kernels_merge() -> None:
    x = normal(4, 20)
    with consing():
        graph, (e, s, f, t) = kernels(lambda x: [nn.softmax(x), nn.softmax(-x)], x)
        both = merge(stack(e, s), stack(f, t))
        assert len(both.stages) == 2 and len(both.locals) == 2  # one loop makes both scratch rows
        got = [results(graph, both, x)[v] for v in graph.outputs]
        for out, y in zip(got, (x, -x), strict=True):
            want = np.exp(y - y.max(-1, keepdims=True))
            np.testing.assert_allclose(out, want / want.sum(-1, keepdims=True), rtol=1e-5)
        assert "160 bytes" in (why_not_merge(stack(e, s), stack(f, t), replace(Limits(), local_bytes=150)) or "")


def test_refusals() -> None:
    with consing():
        _, (exp, div) = kernels(nn.softmax, normal(4, 30))
        assert "reads what the other one computes" in (why_not_merge(exp, div) or "")
        _, (a, b) = kernels(lambda x: [jnp.sin(x), x.sum(0)], normal(4, 30))
        assert why_not_merge(a, b) == f"the grids of {a.name} and {b.name} differ: (4, 30) and (30)"
        _, (a, b) = kernels(lambda x: [jnp.sin(x), jnp.cos(x)], normal(4, 30))
        assert "operations" in (why_not_merge(a, b, replace(Limits(), kernel_nodes=10)) or "")
        assert "operands" in (why_not_merge(a, b, replace(Limits(), operands=2)) or "")


def test_what_both_kernels_keep_for_themselves_is_computed_once() -> None:
    """Two kernels have stages of the same value in them: merged, one of these is enough, and one row of scratch."""

    def fun(x):
        e = jnp.exp(x - x.max(-1, keepdims=True))
        return [e / e.sum(-1, keepdims=True), e * e.max(-1, keepdims=True)]

    with consing():
        graph, (e, *users) = kernels(fun, normal(4, 30))
        both = merge(*[stack(e, user) for user in users if e.outs[0] in user.reads])
        assert len(both.locals) == len(set(both.locals)) == 1
        assert sum(s.slot == e.outs[0] for s in both.stores) == 1
        x = normal(4, 30)
        for v, found in results(graph, both, x).items():
            wanted = np.exp(x - x.max(-1, keepdims=True))
            other = wanted.sum(-1, keepdims=True) ** -1 if v == graph.outputs[0] else wanted.max(-1, keepdims=True)
            np.testing.assert_allclose(found, wanted * other, rtol=1e-5)
