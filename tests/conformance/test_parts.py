"""Checks of parts: right ones pass; of those wrong on purpose it is told what they gave, and what was expected."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("polyax_conformance")

import polyax
from polyax import lax
from polyax.lax import add_p, logistic_p, sort_p
from polyax_conformance.parts import Findings, check_emitter, check_fuser, check_lowering
from polyax_conformance.parts.running import interpret
from polyax_conformance.specs.callbacks import SCALAR, Log, X
from polyax_kernels.api.emitters import Kernel, NumpyEmitter, Schedule, emit_kernel
from polyax_kernels.api.fusers import Graph, KernelNode
from polyax_kernels.api.lowerings import Call, Kernels, Replace, op


def fault(found: Findings, case: str = "") -> str:
    """What is wrong with the first case of that name."""
    named = [w for w in found.wrong if case in w.case]
    assert named, str(found)
    return named[0].fault


# --- emitters ---------------------------------------------------------------------------------------------------------


def by(kind: type[NumpyEmitter]) -> Callable[..., None]:
    """Kernels by an emitter, which runs while it is walked."""

    def run(kernel: Kernel, arrays: Sequence[np.ndarray], scalars: Sequence[int]) -> None:
        extent: Any = kernel.grid[0].extent if kernel.grid else 1
        stop = extent if isinstance(extent, int) else scalars[extent.attr]
        emit_kernel(kernel, Schedule(), kind(kernel, arrays, scalars), np.asarray(0), np.asarray(stop))

    return run


def test_what_kernels_mean_passes() -> None:
    found = check_emitter(interpret)
    assert not found.wrong and not found.lacking and found.checked > 300


@pytest.mark.parametrize("name", ["cpu", "hello_c", "wasm"])
def test_platforms_pass(name: str) -> None:
    """Some of the kernels; ``make`` has no time for a compiler to see them all."""
    pytest.importorskip(f"polyax_{name}")
    for only in ("stages", "folds over 9", "results", "in place", "of int32 with a mask"):
        found = check_emitter(name, only=only)
        assert found.checked and not found.wrong, str(found)


def test_platforms_that_are_not_made_of_kernels() -> None:
    with pytest.raises(TypeError, match="reference isn't made of kernels.*`python -m polyax check reference`"):
        check_emitter("reference")


class WrongValue(NumpyEmitter):
    def op(self, name: str, dtype: np.dtype, *args: Any) -> Any:
        return super().op("add" if name == "sub" else name, dtype, *args)


class PlainMax(NumpyEmitter):
    """As languages have it: what NaN and zeros give depends on the order."""

    def op(self, name: str, dtype: np.dtype, *args: Any) -> Any:
        return np.where(args[0] > args[1], *args) if name == "max" else super().op(name, dtype, *args)


class WrongDtype(NumpyEmitter):
    def load(self, slot: int, offset: Any, dtype: np.dtype, mask: Any = None, other: Any = None) -> Any:
        found = super().load(slot, offset, dtype, mask, other)
        return found.astype(np.int32) if dtype.name == "uint32" else found


class WithoutMasks(NumpyEmitter):
    def store(self, slot: int, offset: Any, value: Any, dtype: np.dtype, mask: Any = None) -> None:
        super().store(slot, offset, value, dtype)


class Forgetful(NumpyEmitter):
    """Drops the second result."""

    def store(self, slot: int, offset: Any, value: Any, dtype: np.dtype, mask: Any = None) -> None:
        if slot != 2:
            super().store(slot, offset, value, dtype, mask)


class Aliased(NumpyEmitter):
    """Works in the memory of its operand."""

    def store(self, slot: int, offset: Any, value: Any, dtype: np.dtype, mask: Any = None) -> None:
        super().store(slot, offset, value, dtype, mask)
        if slot == 1 and self.memory[0].dtype == dtype and self.memory[0].ndim == 1 and self.memory[0].size:
            self.memory[0][0] = 0


class OneTurnTooFew(NumpyEmitter):
    def fold(self, stop: Any, *args: Any, **how: Any) -> Any:
        return super().fold(np.maximum(stop - 1, 0), *args, **how)


class Truncating(NumpyEmitter):
    """Casts as C does."""

    def cast(self, x: Any, source: np.dtype, target: np.dtype) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(x).astype(target)


class Failing(NumpyEmitter):
    def bitcast(self, x: Any, source: np.dtype, target: np.dtype) -> Any:
        raise ValueError("no such instruction")


@pytest.mark.parametrize(
    "kind, only, told",
    [
        (WrongValue, "sub of int32", "operand 2: it is 1 [10], expected -1; 80 of 100 values"),
        (PlainMax, "max of float32", "expected nan"),
        (WrongDtype, "transpose of uint32", None),
        (WithoutMasks, "store of float32 with a mask", "expected 77.0"),
        (Forgetful, "two results", "the comparison: it is True [0], expected False"),
        (
            Aliased,
            "transpose of float32",
            "it writes to operand 0, which it may only read: ",
        ),
        (OneTurnTooFew, "folds over 9 of int32", "add: it is "),
        (Truncating, "casts from float32", "to int8: it is 0 [11], expected 127; "),
        (Failing, "bits of float32", "it raises ValueError: no such instruction"),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_wrong_emitters(kind: type[NumpyEmitter], only: str, told: str | None) -> None:
    found = check_emitter(by(kind), only=only)
    if told is None:  # the bits are the same
        assert not found.wrong
    else:
        assert told in fault(found) and found.wrong[0].text


def test_stores_beyond_an_operand_are_seen() -> None:
    def run(kernel: Kernel, arrays: Sequence[np.ndarray], scalars: Sequence[int]) -> None:
        interpret(kernel, arrays, scalars)
        for x in arrays:
            raw = x.base
            while isinstance(raw.base, np.ndarray):
                raw = raw.base
            raw[-8:] = 0

    assert "it writes beyond operand 0 (in, 12 of float32)" in fault(check_emitter(run, only="transpose of float32"))


def test_what_an_emitter_declines_is_not_wrong() -> None:
    def run(*_: Any) -> None:
        raise NotImplementedError("no exponentials here")

    found = check_emitter(run, only="exp of float32")
    assert found.lacking == {"exp of float32": "no exponentials here"} and not found.wrong
    assert "1 cases, 0 wrong, 1 declined" in str(found)


# --- lowerings --------------------------------------------------------------------------------------------------------


def floats(avals: Any, params: Any) -> str | None:
    return None if avals[0].dtype.kind == "f" else "only floats"


def logistic(out: Any, x: Any, **_: Any) -> Any:
    return op("tanh", x.at(out.i) * 0.5) * 0.5 + 0.5


def test_a_right_rule_passes() -> None:
    found = check_lowering(Kernels(logistic, floats), logistic_p)
    assert found.checked >= 8 and not found.wrong, str(found)
    assert not polyax.explain(lambda x: lax.logistic(x))(X).report.kernels[0].rules[0].startswith("plugin 'cpu.check")


def test_what_a_rule_declines_is_told() -> None:
    found = check_lowering(Kernels(logistic, lambda avals, params: "never"), logistic_p)
    assert "never" in found.lacking.values() and not found.wrong


def call(work: Callable[..., None]) -> Call:
    return Call(lambda ctx, outs, args, **params: work(outs, args), lambda avals, params: None)


def into_its_input(outs: Any, args: Any) -> None:
    outs[0][...] = args[0] + args[1]
    args[0].flags.writeable = True
    args[0][...] = 0


PAIR = {"a sum": (lambda x, y: lax.add(x, y), (X, X + 1))}


@pytest.mark.parametrize(
    "rule, told",
    [
        (
            Kernels(lambda out, x, y, **_: x.at(out.i) - y.at(out.i)),
            r"result 0: it is -1.0 \[0\], expected 1.0; 4 of 4",
        ),
        (Kernels(lambda out, x, y, **_: op("lt", x.at(out.i), y.at(out.i))), "it raises PluginError: .*bool"),
        (Kernels(lambda out, x, y, **_: (x.at(out.i), y.at(out.i))), "it raises PluginError: "),
        (Kernels(lambda out, x, y, **_: 3.0), "it raises PluginError: "),
        (Replace(lambda avals, **_: polyax.make_jaxpr(lambda x, y: (x + y)[:2])(X, X)), "it raises .*Error: "),
        (call(lambda outs, args: None), "the library call wrote nothing to result 0"),
        (call(into_its_input), "input"),
        (call(lambda outs, args: outs[0].reshape(2, 3)), "it raises ValueError: cannot reshape"),
        (replace(Kernels(lambda out, x, y, **_: x.at(out.i) + y.at(out.i)), aliases=True), "result 0|it raises"),
        (lambda out, x, y: x, "it is <function .*, not Kernels, Replace or Call"),
    ],
    ids=["value", "dtype", "count", "number", "shape", "nothing", "alias", "raises", "claims an alias", "no rule"],
)
def test_wrong_rules(rule: Any, told: str) -> None:
    found = check_lowering(rule, add_p, cases=PAIR)
    assert any(re.search(told, w.fault) for w in found.wrong), str(found)


def test_dropped_effects() -> None:
    log = Log()

    def program(x: Any) -> Any:
        return polyax.experimental.io_callback(log.number, SCALAR, x[0], ordered=True) + x

    (primitive,) = (e.primitive for e in polyax.make_jaxpr(program)(X).eqns if e.primitive.name == "io_callback")
    silent = call(lambda outs, args: outs[0].fill(1))
    found = check_lowering(silent, primitive, cases={"a note": (program, [X])}, log=log.take)
    assert "its effects are [], expected [0.0]" in fault(found)


def test_primitives_without_a_case() -> None:
    unknown = SimpleNamespace(name="mine")
    with pytest.raises(
        ValueError, match=r"the suite has no case for mine; give some: cases=\{name: \(function, args\)\}"
    ):
        check_lowering(Kernels(logistic), unknown)


def test_library_calls_on_cases_of_the_suite() -> None:
    def sort(outs: Any, args: Any) -> None:
        outs[0][...] = np.sort(args[0], -1)

    last = lambda avals, p: None if len(avals) == 1 and p["dimension"] == len(avals[0].shape) - 1 else "not here"
    found = check_lowering(replace(call(sort), why_not=last), sort_p)
    assert found.checked and not found.wrong, str(found)


# --- fusers -----------------------------------------------------------------------------------------------------------


def fuser(run: Callable[[Graph, Any], Any]) -> Any:
    return SimpleNamespace(name="mine", run=run)


@pytest.mark.parametrize("name", ["sibling", "producer_consumer"])
def test_those_of_polyax_pass(name: str) -> None:
    from polyax_fusion.fusers import FUSERS

    (one,) = [f for f in FUSERS if f.name == name]
    found = check_fuser(one)
    assert found.checked == 30 and not found.wrong, str(found)
    assert len(found.lacking) < 25


def in_place(graph: Graph, limits: Any) -> Graph:
    graph.nodes.pop()
    return graph


def swapped(graph: Graph, limits: Any) -> Graph:
    """The second kernel first, which nothing forbids unless it reads what the first one gives."""
    return graph.with_nodes([*graph.nodes[1:2], *graph.nodes[:1], *graph.nodes[2:]])


def without_effects(graph: Graph, limits: Any) -> Graph:
    return graph.with_nodes([n for n in graph.nodes if isinstance(n, KernelNode) or not n.effects or n.outs])


def other_types(graph: Graph, limits: Any) -> Graph:
    (value, *_) = graph.outputs
    avals = [a.update(dtype=np.dtype("int32")) if v == value else a for v, a in enumerate(graph.avals)]
    return replace(graph, avals=avals)


def other_constants(graph: Graph, limits: Any) -> Graph:
    """Floats are all one number: a graph that can run and is wrong."""
    from polyax_kernels.api.fusers import rebuilt
    from polyax_kernels.api.lowerings import const

    def changed(node: Any) -> Any:
        if not isinstance(node, KernelNode) or not node.pure or node.stacked or node.alias is not None:
            return node
        if any(x.value.dtype.kind != "f" for x in node.stores):  # what loops end by
            return node
        stages = tuple(
            replace(s, stores=tuple(replace(x, value=const(1, x.value.dtype)) for x in s.stores)) for s in node.stages
        )
        return rebuilt(node, stages, node.primitives)

    return graph.with_nodes(map(changed, graph.nodes))


@pytest.mark.parametrize(
    "run, told",
    [
        (lambda graph, limits: graph.with_nodes(graph.nodes[:-1]), "is computed by nobody"),
        (lambda graph, limits: graph.with_nodes(graph.nodes[::-1]), "computes later"),
        (swapped, "computes later"),
        (lambda graph, limits: graph.with_nodes([*graph.nodes, graph.nodes[-1]]), "which is there already"),
        (without_effects, "its effects are"),
        (other_types, "it made a wrong program: "),
        (other_constants, "it is 1.0"),
        (in_place, "it changed the graph that it was given"),
        (lambda graph, limits: None, "it gave None, not a Graph"),
        (lambda graph, limits: 1 // 0, "it raises ZeroDivisionError: "),
        (lambda graph, limits: replace(graph, outputs=graph.outputs[::-1]), "its inputs and results are"),
    ],
    ids=[
        *("drops", "reverses", "swaps", "repeats", "drops effects", "types", "values"),
        *("in place", "none", "raises", "outputs"),
    ],
)
def test_wrong_fusers(run: Callable[[Graph, Any], Any], told: str) -> None:
    found = check_fuser(fuser(run))
    assert any(told in w.fault for w in found.wrong), str(found)
    assert all(w.text for w in found.wrong)


def test_one_that_changes_nothing_is_told() -> None:
    found = check_fuser(fuser(lambda graph, limits: graph))
    assert not found.wrong and set(found.lacking.values()) == {"it changed nothing"}
