"""Random programs: each fuser keeps what they compute, moves no more bytes, keeps the limits and gives its reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from fusion.test_instruction import random_program
from fuzz.checks import assert_close
from fuzz.programs import Program
from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import on_kernels, on_reference, traced

import polyax as jax
from polyax_fusion.cost import total_moved
from polyax_fusion.fusers import FUSERS
from polyax_kernels.ir.edits.bounds import scratch_bytes
from polyax_kernels.ir.expr import consing
from polyax_kernels.ir.graph import Graph, KernelNode
from polyax_kernels.ir.limits import Limits

NAMES = [f.name for f in FUSERS]
SEEDS = range(30)
ARGS = [np.tanh(np.random.default_rng(n).standard_normal((6, 5))).astype("f4") for n in range(2)]
TIGHT = replace(Limits(), operands=8, kernel_nodes=60, local_bytes=256)


def graphs(seed: int, limits: Limits) -> Iterator[tuple[str, Graph]]:
    """The graph of a random program as it is after each fuser, with the fuser's name."""
    backend = NumpyKernelBackend([])
    graph = backend.graph(traced(random_program(seed, size=60), ARGS))
    yield "", graph
    for fuser in FUSERS:
        graph = fuser.run(graph, limits)
        yield fuser.name, graph


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("limits", [Limits(), TIGHT], ids=["roomy", "tight"])
def test_bytes_do_not_grow_and_limits_hold(seed: int, limits: Limits) -> None:
    with consing():
        before = None
        for name, graph in graphs(seed, limits):
            now = total_moved(graph, graph.nodes)
            assert before is None or now <= before, name
            before = now
            for node in graph.nodes:
                assert not isinstance(node, KernelNode) or why_beyond(node, limits) is None, name


def test_limits_hold_where_stages_share_rows() -> None:
    """What was computed once for each row may be computed at more places in the kernel of two."""

    def bits(key):
        return [jax.random.bits(k) for k in jax.random.split(key, 3)]

    backend = NumpyKernelBackend()
    with consing():
        graph = backend.graph(traced(jax.vmap(bits), [np.arange(8, dtype=np.uint32).reshape(4, 2)]))
    nodes = [n for n in graph.nodes if isinstance(n, KernelNode)]
    assert nodes and not [why for n in nodes if (why := why_beyond(n, backend.limits))]


def why_beyond(node: KernelNode, limits: Limits) -> str | None:
    """What one equation needs by itself is no fuser's fault."""
    if len(node.primitives) == 1:
        return None
    if len({*node.reads, *node.outs}) > limits.operands or node.weight > limits.kernel_nodes:
        return f"{node.name} is too large"
    return f"{node.name} needs too much scratch" if scratch_bytes(node) > limits.local_bytes else None


@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_stay_in_an_order_in_which_they_can_run(seed: int) -> None:
    with consing():
        for name, graph in graphs(seed, TIGHT):
            known = {*graph.inputs, *graph.literals}
            for node in graph.nodes:
                assert known.issuperset(node.inputs), name
                known.update(node.outs)
            assert known.issuperset(graph.outputs), name


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_each_decision_names_its_fuser_the_nodes_and_a_reason_if_it_is_a_refusal(seed: int) -> None:
    with consing():
        *_, (_, graph) = graphs(seed, TIGHT)
    assert {d.fuser for d in graph.decisions} <= set(NAMES)
    assert all(d.producer and d.consumer and d.reason != "" for d in graph.decisions)
    assert any(d.reason for d in graph.decisions)


@pytest.mark.parametrize("seed", SEEDS[:12])
@pytest.mark.parametrize("names", [NAMES, *[[name] for name in NAMES[1:]]], ids=["all", *NAMES[1:]])
def test_fused_equals_unfused(seed: int, names: list[str]) -> None:
    program = random_program(seed + 50)
    for got, want in zip(on_kernels(program, ARGS, names), on_reference(program, ARGS), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("seed", range(20))
def test_fused_equals_unfused_on_the_cpu(seed: int) -> None:
    """Programs of all shapes and dtypes; their gradients, where they have some."""
    pytest.importorskip("polyax_cpu")
    program = Program(5000 + seed, jax, steps=15)
    function = jax.grad(program.loss, program.inexact) if program.inexact and seed % 2 else program
    results = []
    for names in (",".join(NAMES), ""):
        with jax.default_device(jax.devices("cpu")[0]), jax.config.override(fusers=names):
            results.append(jax.tree_util.tree_leaves(jax.jit(lambda *args: function(*args))(*program.args)))
    for fused, unfused in zip(*results, strict=True):
        assert_close(fused, unfused)
