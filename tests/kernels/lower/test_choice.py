"""Who is asked for a lowering, in which order, and what is told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from kernels.gpu_backend import grouped_backend
from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import assert_same, compiled, launched, planned, traced

import polyax
from polyax import lax
from polyax.control.flow.looping import scan
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.errors import NoLowering, PluginError
from polyax.ir.jaxpr import Eqn, Var
from polyax.ir.primitive import Primitive
from polyax.ops import basis, elementwise
from polyax.runtime.contract.hooks import Lowering, Offer
from polyax_kernels.gpu.host import through_host
from polyax_kernels.ir.limits import Limits
from polyax_kernels.lower.choice import Rules
from polyax_kernels.lower.fallback import on_host
from polyax_kernels.lower.lowering import Call, Kernels, Replace, Target, always
from support.offers import offered

X = np.array([3, 1, 2], "f4")
AVAL = ShapedArray((3,), np.dtype("float32"))


def primitive(name: str, decompose: Any = None) -> Primitive:
    """From one array to another of its type."""
    p = Primitive(name)
    p.abstract_eval = lambda x, **_: [x]
    p.decompose = decompose
    return p


def use(p: Primitive, **params: Any) -> Eqn:
    return Eqn(p, [Var(AVAL)], [Var(AVAL)], params)


def declining(name: str, **fields: Any) -> Call:
    """Declines if it is told to."""
    return Call(
        lambda *_: None, lambda avals, params: f"{name} won't" if name in params["declining"] else None, **fields
    )


def rules(
    p: Primitive, own: Sequence[Offer] = (), family: Any = None, shared: Any = (), host: Any = "forbidden"
) -> Rules:
    target = Target("here", Limits())
    return Rules(target, {p: own}, {} if family is None else {p: family}, {p.name: shared}, lambda _: host)


class WithPlugin(NumpyKernelBackend):
    def __init__(self, table: Mapping[Primitive, Lowering]) -> None:
        super().__init__()
        self.table = offered(table)

    def lowerings(self) -> Mapping[Primitive, Sequence[Offer]]:
        return self.table


def test_the_order() -> None:
    p = primitive("test_order", lambda x: [x])
    names = ("strong plugin", "weak plugin", "family", "shared one", "shared two")
    strong, weak, family, *shared = (declining(n) for n in names)
    asked = rules(p, [Offer(names[0], strong), Offer(names[1], weak)], family, tuple(shared), on_host(p))
    found = [asked.choose(use(p, declining=names[:n])) for n in range(len(names))]
    assert [x for _, x in found] == [strong, weak, family, *shared]
    assert [rule for rule, _ in found] == ["strong plugin", "weak plugin", "family", "shared", "shared"]
    rule, lowering = asked.choose(use(p, declining=names))
    assert rule == "decomposition of test_order" and isinstance(lowering, Replace)
    p.decompose = None
    assert asked.choose(use(p, declining=names)) == ("host", asked.host(p))


def test_all_reasons_are_told() -> None:
    p = primitive("test_reasons")
    names = ("plugin", "family", "shared")
    plugin, family, shared = map(declining, names)
    device = declining("device", operands="device")
    with pytest.raises(NoLowering) as caught:
        rules(p, [Offer("plugin 'a' of one 1.0", plugin), Offer("plugin 'b' of two", device)], family, shared).choose(
            use(p, declining=names)
        )
    assert str(caught.value) == (
        "'test_reasons' on (float32[3]) can't run on here. Looked at plugin 'a' of one 1.0: plugin won't; "
        "plugin 'b' of two: it computes on views of a device's memory, and here gives host arrays; "
        "the rules of devices like it: family won't; the shared kernel rules: shared won't; its decomposition: none; "
        "the host: forbidden."
    )


def test_a_backend_declines_what_it_shares_with_others() -> None:
    """By operands and results; what is brought for it has reasons of its own."""
    p = primitive("test_declined", lambda x: [x])
    asked: list[Any] = []

    def declines(eqn: Eqn) -> str:
        asked.append(eqn.params)
        return "not here"

    own, family, shared = map(declining, ("own", "family", "shared"))
    target = Target("here", Limits(), asked=declines)
    table = Rules(target, {p: [Offer("own", own)]}, {p: family}, {p.name: shared}, lambda _: "forbidden")
    assert table.choose(use(p, declining=())) == ("own", own) and not asked
    rule, lowering = table.choose(use(p, declining=("own",)))
    assert rule == "decomposition of test_declined" and isinstance(lowering, Replace)
    assert asked == [{"declining": ("own",)}] * 2
    p.decompose = None
    with pytest.raises(NoLowering, match="devices like it: not here; the shared kernel rules: not here; its decomp"):
        table.choose(use(p, declining=("own",)))


class WithoutTangents(NumpyKernelBackend):
    """One whose language has no tangent of float32, nor results of int16."""

    def why_not(self, primitive: Any, avals: Any, outs: Any, params: Any) -> str | None:
        if primitive is lax.tan_p and avals[0].dtype == np.float32:
            return "its language has no tangent"
        return "it gives no int16" if any(out.dtype == np.int16 for out in outs) else None


def test_what_a_backend_declines_is_left_to_the_host_if_that_is_allowed() -> None:
    (device, *_) = WithoutTangents().devices()
    with polyax.default_device(device):
        with pytest.raises(NoLowering, match="the shared kernel rules: its language has no tangent"):
            polyax.jit(lax.tan)(X)
        with pytest.raises(NoLowering, match="the shared kernel rules: it gives no int16"):
            polyax.jit(lambda x: x.astype(np.int16))(X)
        with config.override(host_fallback="allow"):
            np.testing.assert_allclose(polyax.jit(lambda x: lax.tan(x) + 1)(X), np.tan(X) + 1, rtol=1e-6)


def test_a_lowering_of_another_kind_of_backend() -> None:
    class Foreign:
        why_not, priority = staticmethod(always), 0

    p = primitive("test_foreign")
    with pytest.raises(
        PluginError, match="x of y brings .*Foreign.* of 'test_foreign'; here takes a Kernels, a Replace"
    ):
        rules(p, [Offer("x of y", Foreign())]).choose(use(p))


def test_a_call_has_one_function() -> None:
    for functions in ({}, {"run": print, "prepare": print}):
        with pytest.raises(TypeError, match="a Call needs one function"):
            Call(**functions)


def doubled(p: Primitive, backend: NumpyKernelBackend) -> tuple[np.ndarray, Any]:
    closed = traced(lambda x: elementwise.neg(p.bind1(x)), [X])
    executable = compiled(backend, closed)
    (out,) = launched(backend, executable, closed, [X])
    return out, executable.report()


def test_a_plugins_rule_for_a_primitive_that_has_a_decomposition() -> None:
    p = primitive("test_doubled", lambda x: [basis.add(x, x)])
    out, report = doubled(p, WithPlugin({p: Kernels(lambda out, x: x.at(out.i) * 3)}))
    assert_same([out], [-3 * X])
    assert [(k.primitives, k.rules) for k in report.kernels] == [(("test_doubled", "neg"), ("the test", "shared"))]


def test_a_plugin_that_declines_leaves_the_decomposition() -> None:
    p = primitive("test_doubled_instead", lambda x: [basis.add(x, x)])
    own = Kernels(lambda out, x: x.at(out.i) * 3, lambda avals, params: "not today")
    out, report = doubled(p, WithPlugin({p: own}))
    assert_same([out], [-2 * X])
    whose = ("decomposition of test_doubled_instead", "shared")
    assert [(k.primitives, k.rules) for k in report.kernels] == [(("add", "neg"), whose)]


def test_whose_rules_run_the_parts_of_a_program_that_a_plugin_brings() -> None:
    p, inner = primitive("test_replaced"), primitive("test_part", lambda x: [basis.mul(x, x)])
    program = traced(lambda x: basis.add(inner.bind1(x), elementwise.sin(x)), [X])
    backend = WithPlugin({p: Replace(lambda avals, **_: program)})
    backend.chosen = set()
    _, report = doubled(p, backend)
    rules = {k.primitives[0]: k.rules for k in report.kernels}
    assert rules == {
        "mul": ("decomposition of test_part",), "sin": ("the test",), "add": ("the test",), "neg": ("shared",),
    }  # fmt: skip


def test_a_call_on_host_arrays_is_refused_by_a_backend_that_has_none() -> None:
    p = primitive("test_host_arrays")
    closed = traced(lambda x: p.bind1(x), [X])
    backend = grouped_backend(16)

    def triple(ctx: Any, outs: Any, args: Any) -> None:
        outs[0][...] = 3 * args[0]

    with pytest.MonkeyPatch.context() as patch, config.override(host_fallback="error"):
        patch.setattr(backend, "lowerings", lambda: offered({p: Call(triple)}))
        with pytest.raises(
            NoLowering, match="it computes on host arrays, and grouped16 gives views of a device's memory"
        ):
            compiled(backend, closed)
        patch.setattr(backend, "lowerings", lambda: offered({p: through_host(Call(triple))}))
        (out,) = launched(backend, compiled(backend, closed), closed, [X])
    assert_same([out], [3 * X])


TABLE = np.array([10, 20, 30, 40], "f4")


def test_arrays_that_a_decomposition_brings_along() -> None:
    p = primitive("test_table", lambda x: [basis.mul(x, TABLE[:3])])
    whole = primitive("test_whole_table", lambda x: [TABLE[1:]])
    closed = traced(lambda x: [p.bind1(x), basis.add(p.bind1(x), x), whole.bind1(x)], [X])
    backend = WithPlugin({})
    outs = launched(backend, compiled(backend, closed), closed, [X])
    assert_same(outs, [X * TABLE[:3], X * TABLE[:3] + X, TABLE[1:]])
    again = launched(backend, compiled(backend, closed, donated=(True,)), closed, [X])
    assert_same(again, outs)
    plan = planned(backend, closed)
    assert sorted(x.tolist() for x in plan.literals) == [[10, 20, 30], [20, 30, 40]]


def test_equal_arrays_of_several_shapes() -> None:
    tables = [TABLE[:3].copy(), TABLE[:3].copy(), TABLE[:3].reshape(3, 1)]
    ps = [
        primitive(f"test_equal_{n}", lambda x, t=t: [basis.mul(x, basis.reshape(t, (3,)))])
        for n, t in enumerate(tables)
    ]
    closed = traced(lambda x: [p.bind1(x) for p in ps], [X])
    backend = WithPlugin({})
    assert_same(launched(backend, compiled(backend, closed), closed, [X]), [X * TABLE[:3]] * 3)


def test_arrays_of_decompositions_in_loops() -> None:
    p = primitive("test_table_in_a_loop", lambda x: [basis.add(basis.mul(x, TABLE[:3]), TABLE[1:])])

    def fun(x: Any) -> Any:
        return scan(lambda carry, _: (p.bind1(carry), elementwise.sin(p.bind1(carry))), x, None, length=3)

    closed = traced(lambda x: list(fun(x)), [X])
    backend = WithPlugin({})
    executable = compiled(backend, closed)
    want, rows = X, []
    for _ in range(3):
        want = want * TABLE[:3] + TABLE[1:]
        rows.append(np.sin(want))
    last, _ = launched(backend, executable, closed, [X])
    assert_same([last], [want])
    (loop,) = executable.report().kernels
    whose = {rule for k in loop.programs[0].kernels for rule in k.rules}
    assert loop.rules == ("shared",) and whose == {"decomposition of test_table_in_a_loop", "shared"}
    arrays = [x for x in planned(backend, closed).literals if x.shape]
    assert sorted(x.tolist() for x in arrays) == [[10, 20, 30], [20, 30, 40]], "once, however often the loop turns"


def test_a_decomposition_of_the_wrong_type_is_an_error() -> None:
    p = primitive("test_mistyped", lambda x: [basis.convert_element_type(x, np.dtype("int32"))])
    with pytest.raises(TypeError, match=r"of 'test_mistyped' gives int32\[3\], its abstract evaluation float32\[3\]"):
        compiled(WithPlugin({}), traced(lambda x: p.bind1(x), [X]))
