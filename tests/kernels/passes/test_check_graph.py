"""The checker of graphs: fusers that make wrong programs are named, with what they did."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import compiled, traced

import polyax.numpy as jnp
from polyax import config, lax
from polyax.debug import callback
from polyax.ir.errors import InternalError, PluginError
from polyax.runtime.contract.hooks import Chosen
from polyax_kernels.ir.edits import merge
from polyax_kernels.ir.expr import Expr, consing, const, index, make, op, rewrite
from polyax_kernels.ir.graph import Fuser, Graph, KernelNode, own_point, pure_node, rebuilt
from polyax_kernels.ir.kernel import Store, map_store
from polyax_kernels.ir.limits import DEFAULT
from polyax_kernels.passes.check import check_graph
from polyax_kernels.pipeline import fusing

X = np.arange(12, dtype="f4").reshape(3, 4)


def fault(run: Callable[[Graph, Any], Graph], fun: Callable[..., Any], *args: np.ndarray, **limits: int) -> str:
    """What is found of the fuser ``run``, which must be named."""
    fuser, allowed = Fuser("mine", run), replace(DEFAULT, **limits)
    with consing():
        before = NumpyKernelBackend(fused=False).graph(traced(fun, args))
        check_graph(before, "the lowering")
        with pytest.raises(InternalError) as found:
            check_graph(fuser.run(before, allowed), fusing(Chosen("the tests", fuser)).title, before, allowed)
    text = str(found.value)
    assert text.startswith("fuser 'mine' of the tests made a wrong program: ") and "POLYAX_FUSERS" in text
    return text


def edited(*nodes: Callable[[Any], Any] | None) -> Callable[[Graph, Any], Graph]:
    """A fuser that changes the nodes one by one; None leaves one as it is."""

    def run(graph: Graph, limits: Any) -> Graph:
        found = [change(node) if change else node for change, node in zip(nodes, graph.nodes, strict=True)]
        return graph.with_nodes([node for node in found if node is not None])

    return run


def two(x: Any) -> Any:
    return jnp.exp(jnp.sin(x))


def test_dropped_node() -> None:
    text = fault(edited(lambda node: None, None), two, X)
    assert "exp reads v1 (f32[3,4]), which is computed by nobody: sin did before this pass" in text
    assert "the result v2 (f32[3,4]) is computed by nobody: exp did" in fault(edited(None, lambda node: None), two, X)


def test_use_before_definition() -> None:
    text = fault(lambda graph, limits: graph.with_nodes(graph.nodes[::-1]), two, X)
    assert "exp reads v1 (f32[3,4]), which sin computes later" in text


def test_value_that_is_computed_twice() -> None:
    text = fault(lambda graph, limits: graph.with_nodes([*graph.nodes, graph.nodes[0]]), two, X)
    assert "sin computes v1 (f32[3,4]), which is there already" in text


def test_effects_in_another_order() -> None:
    def fun(x):
        callback(print, x)
        callback(len, x)
        return jnp.sin(x)

    def swapped(graph, limits):
        a, b = (n for n, node in enumerate(graph.nodes) if getattr(node, "effects", False))
        graph = graph.with_nodes(graph.nodes)
        graph.nodes[a], graph.nodes[b] = graph.nodes[b], graph.nodes[a]
        return graph

    assert "effects are debug_callback (equation 1), debug_callback (equation 0) in this" in fault(swapped, fun, X)
    left = lambda graph, limits: graph.with_nodes([n for n in graph.nodes if isinstance(n, KernelNode)])
    assert "effects are none in this order, not debug_callback (equation 0), debug" in fault(left, fun, X)


def test_changed_results() -> None:
    text = fault(lambda graph, limits: replace(graph, outputs=graph.outputs[:1] * 2), lambda x: (x, two(x)), X)
    assert "its inputs and results are (0,) and (0, 0), not (0,) and (0, 2)" in text

    def narrowed(graph, limits):
        return replace(graph, avals=[*graph.avals[:-1], graph.avals[-1].update(shape=(2, 4))])

    assert "v2 is f32[2,4], and was f32[3,4] before this pass" in fault(narrowed, two, X)


@pytest.mark.parametrize(
    ("limit", "text"), [({"operands": 3}, "has 4 operands, and 3 are the limit"), ({"kernel_nodes": 20}, "operations")]
)
def test_limits(limit, text) -> None:
    def all_in_one(graph, limits):
        return graph.with_nodes([merge(*graph.nodes)])

    assert text in fault(all_in_one, lambda x, y: (jnp.sin(x), jnp.sin(y)), X, X, **limit)


def test_primitives_may_be_above_the_limits_on_their_own() -> None:
    limits = replace(DEFAULT, operands=2)
    with consing():
        graph = NumpyKernelBackend(fused=False).graph(traced(jnp.add, [X, X]))
        check_graph(graph, "a fuser", graph, limits)


def test_backends_check_their_fusers() -> None:
    class Losing(NumpyKernelBackend):
        def chosen_fusers(self) -> list[Chosen]:
            return [Chosen("the tests", Fuser("losing", edited(lambda node: None, None)))]

    with pytest.raises(PluginError, match="fuser 'losing' of the tests gave a graph in which nobody computes v"):
        compiled(Losing(), traced(two, [X]))


def shifted(by: int) -> Callable[[KernelNode], KernelNode]:
    """Reads everything ``by`` columns further on."""

    def further(x: Expr) -> Expr | None:
        first, second, *rest = x.args if x.kind == "load" else (x, x)
        return make("load", x.dtype, (first, second + by, *rest), x.attr) if x.kind == "load" else None

    return with_stores(lambda store: map_store(store, lambda x: rewrite(x, further)))


def with_stores(change: Callable[[Store], Store]) -> Callable[[KernelNode], KernelNode]:
    """Changes what a node stores, and tells it of itself."""

    def edit(node: KernelNode) -> KernelNode:
        (stage,) = node.stages
        stages = (replace(stage, stores=tuple(map(change, stage.stores))),)
        again = rebuilt(node, stages, node.primitives)
        return replace(again, outs=node.outs, stages=stages)

    return edit


def test_access_out_of_bounds() -> None:
    text = fault(edited(shifted(1)), jnp.sin, X)
    assert "sin reads dimension 1 of v0 (f32[3,4]) at add(i1, 1), which is from 1 to 4" in text
    assert "which is from -1 to 2" in fault(edited(shifted(-1)), jnp.sin, X)
    text = fault(edited(shifted(1)), lambda x: lax.pad(x, np.float32(0), ((0, 0, 0), (2, 3, 0))), X)
    assert "v0 (f32[3,4]) at add(add(i1, -2), 1), which is from 1 to 4" in text  # where its mask holds


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda s: replace(s, indices=(s.indices[0], const(0))), "writes v1 at [i0, 0], which isn't each element once"),
        (lambda s: replace(s, indices=s.indices[::-1]), "sin writes dimension 0 of v1 (f32[3,4]) at i1"),
        (lambda s: replace(s, value=op("lt", s.value, s.value)), "writes v1 (f32[3,4]) as bool at 2 indices"),
        (lambda s: replace(s, mask=index(s.indices[0].attr) >= 1), "which isn't each element once"),
        (lambda s: replace(s, slot=0), "stores v0, and its results are v1"),
    ],
)
def test_wrong_stores(change, text) -> None:
    assert text in fault(edited(with_stores(change)), jnp.sin, X)


def test_a_node_that_tells_fusers_something_else() -> None:
    assert "says that it reads nothing, and loads v0" in fault(edited(lambda n: replace(n, reads={})), jnp.sin, X)
    assert "says that it has 1 operations" in fault(edited(lambda n: replace(n, weight=1)), jnp.sin, X)
    at_its_point = edited(lambda n: replace(n, reads={0: replace(n.reads[0], aligned=True)}))
    assert "reads v0 at other places than it says" in fault(at_its_point, lambda x: x.T, X)


def test_more_bytes_moved() -> None:
    def copied(graph, limits):
        graph = replace(graph, avals=[*graph.avals, graph.avals[0]])
        (node,) = graph.nodes
        body, value = node.stores[0].value, len(graph.avals) - 1
        return graph.with_nodes([pure_node(node.grid, own_point(node.grid), {value: body}, ("copy",)), node])

    assert "its kernels move 192 bytes, and those before this pass 96" in fault(copied, jnp.sin, X)


def test_masks_bound_what_depends_on_data() -> None:
    """Lowerings clamp or mask each access; no program of these is refused."""

    def fun(x, i):
        part = x[i, i + 1] + x.at[i].add(1.0, mode="drop")[0, 0] + x.at[i, 0].set(2.0, mode="clip")[1, 1]
        return part, jnp.take(x, i, 0, mode="fill"), lax.dynamic_slice(x, (i[0], i[1]), (2, 2)), jnp.roll(x, i[0])

    with config.override(checks=True):
        compiled(NumpyKernelBackend(), traced(fun, [X, np.array([5, -7], "i4")]))


def test_masks_hold_where_what_they_guard_is_an_index() -> None:
    """A program on a block: indices are loaded where they point into it, which is known of them there."""

    def picked(x, i, begin):
        y = jnp.exp(x - x.max(1, keepdims=True))
        at = y.at[jnp.arange(5) - begin, i]
        return at.get(mode="fill", fill_value=0, wrap_negative_indices=False).sum()

    with config.override(checks=True):
        compiled(NumpyKernelBackend(), traced(picked, [X, np.array([0, 1, 2, 3, 1], "i4"), np.int32(1)]))


def test_cost_is_linear() -> None:
    def chain(n):
        def fun(x):
            for k in range(n):
                x = jnp.sin(x) if k % 3 else jnp.exp(x.T).T + x.sum()
            return x

        return traced(fun, [X])

    def seconds(closed, checks):
        best = 9e9
        for _ in range(3):
            started = time.thread_time()
            with config.override(checks=checks), consing():
                NumpyKernelBackend().graph(closed)
            best = min(best, time.thread_time() - started)
        return best

    short, long = chain(50), chain(400)
    assert seconds(long, True) < 20 * seconds(short, True)
    assert seconds(long, True) < 3 * seconds(long, False)


def test_the_lowering_is_checked_too() -> None:
    with consing():
        graph = NumpyKernelBackend(fused=False).graph(traced(two, [X]))
        with pytest.raises(InternalError, match=r"the lowering made .*exp reads v1 .* is computed by nobody"):
            check_graph(graph.with_nodes(graph.nodes[1:]), "the lowering")
