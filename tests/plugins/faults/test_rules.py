"""What a broken lowering or fuser does to a user of somebody else's backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("polyax_hello_c")

from plugins.faults.broken import fuser, lowering

import polyax
import polyax.numpy as jnp
from polyax.ir.errors import InternalError, PluginError
from polyax.ir.primitive import PRIMITIVES
from polyax.ops.elementwise import sin_p
from polyax.trace.recording import trace_to_jaxpr
from polyax_kernels.ir.expr import cast, op
from polyax_kernels.lower.lowering import Call, Kernels, Replace

X = np.arange(6, dtype=np.float32).reshape(2, 3)
WHOSE = "plugin 'hello_c.broken' of polyax-broken 1.2.3"


def fails(*_: Any, **__: Any) -> Any:
    raise KeyError("a fault of the rule")


def program() -> Any:
    return np.asarray(polyax.jit(lambda x: jnp.cos(jnp.sin(x)) @ x.T)(X))


def right(out: Any, x: Any, **_: Any) -> Any:
    return op("sin", x.at(out.i))


def the_note(error: BaseException) -> str:
    (note,) = [n for n in getattr(error, "__notes__", ()) if n.startswith("In plugin")]
    return note


@pytest.mark.parametrize(
    "rule, text",
    [
        (Kernels(lambda out, x, **_: 3.0), "build of the lowering gave 3.0, not an expression"),
        (Kernels(lambda out, x, **_: None), "build of the lowering gave None, not an expression"),
        (Kernels(lambda *a, **_: [right(*a)]), "build of the lowering gave .*, not an expression"),
        (Kernels(lambda *a, **_: (right(*a),) * 2), "gave 2 expressions, and there are 1 results"),
        (
            Kernels(lambda *a, **_: cast(right(*a), np.dtype("int32"))),
            r"an expression of int32 for result 0, which is float32\[2,3\]; .*cast` converts it",
        ),
        (Kernels(right, why_not=lambda avals, params: True), "why_not of the lowering gave True, not a reason or None"),
        (Replace(lambda avals, **_: None), "program of the lowering gave None, not a ClosedJaxpr"),
        (
            Replace(lambda avals, **_: trace_to_jaxpr(lambda x: [x.sum()], avals)),
            r"program of the lowering gives float32\[\]; it stands for an equation with float32\[2,3\]",
        ),
        (
            Replace(lambda avals, **_: trace_to_jaxpr(lambda x, y: [x + y], [*avals, *avals])),
            r"program of the lowering takes float32\[2,3\], float32\[2,3\]; it stands for",
        ),
        (Call(prepare=lambda *_: 3), r"prepare of the lowering gave 3, not a function of \(outs, args\)"),
    ],
)
def test_what_lowerings_give_is_checked(rule: Any, text: str) -> None:
    with lowering({sin_p: rule}), pytest.raises(PluginError, match=text) as caught:
        program()
    note = the_note(caught.value)
    assert note.startswith(f"In {WHOSE}, while program '<lambda>' was compiled for hello_c:0: primitives sin"), note
    assert f"asked for at {__file__}" in note


@pytest.mark.parametrize(
    "rule, doing",
    [
        (Kernels(fails), "compiled for"),
        (Kernels(right, why_not=fails), "compiled for"),
        (Replace(fails), "compiled for"),
        (Call(prepare=fails), "compiled for"),
        (Call(fails), "run on"),
        (Call(prepare=lambda *_: fails), "run on"),
    ],
)
def test_what_lowerings_raise_keeps_its_class_and_names_them(rule: Any, doing: str) -> None:
    with lowering({sin_p: rule}), pytest.raises(KeyError, match="a fault of the rule") as caught:
        program()
    note = the_note(caught.value)
    assert note.startswith(f"In {WHOSE}, while program '<lambda>' was {doing} hello_c:0: primitives sin"), note
    assert f"asked for at {__file__}" in note


@pytest.mark.parametrize("run", [lambda ctx, outs, args: None, lambda ctx, outs, args: np.sin(args[0])])
def test_a_library_call_fills_its_results(run: Any) -> None:
    told = "the library call wrote nothing to result 0: fill outs"
    with polyax.config.override(checks=True), lowering({sin_p: Call(run)}), pytest.raises(PluginError, match=told) as e:
        program()
    assert the_note(e.value).startswith(f"In {WHOSE}, while program '<lambda>' was run on hello_c:0: primitives sin")


def ends(*_: Any, **__: Any) -> Any:
    raise SystemExit(3)


@pytest.mark.parametrize("rule", [Kernels(ends), Kernels(right, why_not=ends), Replace(ends), Call(ends)])
def test_a_lowering_does_not_end_the_process(rule: Any) -> None:
    with lowering({sin_p: rule}), pytest.raises(PluginError, match=f"{WHOSE} raised SystemExit") as caught:
        program()
    assert the_note(caught.value).startswith(f"In {WHOSE}, while program '<lambda>' was ")
    assert "primitives sin" in the_note(caught.value)


def test_a_fuser_does_not_end_the_process() -> None:
    with fuser(ends), pytest.raises(PluginError, match=f"{WHOSE} raised SystemExit") as caught:
        program()
    assert f"fuser 'mine' of {WHOSE}" in the_note(caught.value)


def test_a_rule_of_no_kind_is_refused() -> None:
    class Other:
        priority = 0

        def why_not(self, avals: Any, params: Any) -> None: ...

    with (
        lowering({sin_p: Other()}),
        pytest.raises(PluginError, match=f"{WHOSE} brings .* as lowering of 'sin'; hello_c"),
    ):
        program()


def test_a_rule_that_always_declines_changes_nothing() -> None:
    product = next(p for p in PRIMITIVES if p.name == "dot_general")
    with lowering({product: Call(fails, why_not=lambda avals, params: "not today", priority=10)}):
        np.testing.assert_allclose(program(), np.cos(np.sin(X)) @ X.T, rtol=1e-5)


# --- fusers -----------------------------------------------------------------------------------------------------------


def dropping(graph: Any, limits: Any) -> Any:
    return graph.with_nodes(graph.nodes[:-1])


@pytest.mark.parametrize(
    "run, text",
    [
        (lambda graph, limits: None, "gave None, not a Graph"),
        (lambda graph, limits: graph.nodes, r"gave \[.*, not a Graph"),
        (dropping, "gave a graph in which nobody computes v"),
        (lambda graph, limits: graph.with_nodes([]), "gave a graph in which nobody computes v"),
    ],
)
@pytest.mark.parametrize("checks", [False, True])
def test_what_fusers_give_is_checked(run: Any, text: str, checks: bool) -> None:
    with fuser(run), polyax.config.override(checks=checks), pytest.raises(PluginError, match=text) as caught:
        program()
    assert f"fuser 'mine' of {WHOSE}" in str(caught.value) and "POLYAX_FUSERS" in str(caught.value)
    assert the_note(caught.value).startswith(f"In {WHOSE}, while program '<lambda>' was compiled for hello_c:0")


def reordering(graph: Any, limits: Any) -> Any:
    return graph.with_nodes(graph.nodes[::-1])


def test_graphs_are_checked_after_each_fuser() -> None:
    checks = polyax.config.override(checks=True)
    with fuser(reordering), checks, pytest.raises(InternalError, match="reads v.* computes later") as caught:
        program()
    assert f"fuser 'mine' of {WHOSE}" in str(caught.value) and "POLYAX_FUSERS" in str(caught.value)
    assert the_note(caught.value).startswith(f"In {WHOSE}, while program '<lambda>' was compiled for hello_c:0")


def test_a_wrong_pass_of_polyax_is_no_backends_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    backwards = lambda graph: graph.with_nodes(graph.nodes[::-1])
    monkeypatch.setattr("polyax_kernels.pipeline.absorb_transposes", backwards)
    on_it = polyax.default_device(polyax.devices("hello_c")[0])
    with on_it, polyax.config.override(checks=True), pytest.raises(InternalError, match="'absorb transposes'") as e:
        program()
    assert "In polyax-kernels, while program '<lambda>' was compiled for hello_c:0" in e.value.__notes__[0]
    polyax.clear_caches()


def test_what_fusers_raise_names_them() -> None:
    with fuser(fails), pytest.raises(KeyError, match="a fault") as caught:
        program()
    assert the_note(caught.value).startswith(f"In {WHOSE}, while program '<lambda>' was compiled for hello_c:0")
    assert f"fuser 'mine' of {WHOSE}; POLYAX_FUSERS can leave it out" in the_note(caught.value)
