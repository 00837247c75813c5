"""What graphs mean, and that it stays the same from pass to pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("polyax_conformance")

from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import traced

import polyax
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.runtime.contract.backend import CompileOptions
from polyax.runtime.debugging.beside import difference, on_reference
from polyax.trace.recording import hoist_consts
from polyax_conformance.parts.programs import X, programs
from polyax_conformance.specs.callbacks import Log
from polyax_kernels.ir.expr import consing
from polyax_kernels.ir.graph import CallNode
from polyax_kernels.lower.lowering import Call
from polyax_kernels.run.meaning import meaning

PROGRAMS = {name: program for name, program in programs(Log()).items() if name != "effects"}


def hoisted(fun: Any, args: Any) -> tuple[ClosedJaxpr, list[np.ndarray]]:
    closed, consts = hoist_consts(polyax.make_jaxpr(fun)(*args))
    return closed, [*map(np.asarray, consts), *args]


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_pass_changes_what_a_program_means(name: str) -> None:
    closed, inputs = hoisted(*PROGRAMS[name])
    backend = NumpyKernelBackend()
    found = backend.meanings(closed, CompileOptions(backend.devices()[0]), inputs)
    want = on_reference(closed, inputs)
    assert found[0].part.startswith("its lowering of ") and found[0].plugin == "polyax-kernels"
    for _, part, results, _ in found:
        assert isinstance(results, list) and difference(results, want) is None, part


def test_inputs_stay_as_they_are() -> None:
    closed = traced(lambda x: x.at[0].set(0), [X])
    before = X.copy()
    with consing():
        (result,) = meaning(NumpyKernelBackend().graph(closed), [X])
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(result[0], np.zeros(7))


@pytest.mark.parametrize("call", [Call(lambda *_, **__: None, operands="device"), Call(native=lambda *_: None)])
def test_calls_that_take_no_arrays_are_the_references(call: Call) -> None:
    closed = traced(lambda x: polyax.lax.sort(x), [X])
    with consing():
        graph = NumpyKernelBackend().graph(closed)
        (node,) = graph.nodes
        assert isinstance(node, CallNode)
        (result,) = meaning(graph.with_nodes([replace(node, lowering=call)]), [X])
    np.testing.assert_array_equal(result, np.sort(X))


def test_a_loop_may_turn_backwards_or_not_at_all() -> None:
    def program(x: Any) -> Any:
        backwards = polyax.lax.scan(lambda c, row: (c + row, c * row), x[0], x, reverse=True)
        return [*backwards, polyax.lax.while_loop(lambda c: c.sum() < -1e9, lambda c: c * 2, x)]

    closed = traced(program, [X])
    with consing():
        got = meaning(NumpyKernelBackend().graph(closed), [X])
    assert difference(got, on_reference(closed, [X])) is None
