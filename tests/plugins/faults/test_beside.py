"""``POLYAX_DEBUG_BACKEND`` runs programs beside the reference, and stops at the first step that differs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugins.faults.broken import OWNER, Working, backend, fuser, giving, launching, lowering

import polyax
import polyax.numpy as jnp
from polyax.ir.errors import Disagreement, PluginError
from polyax.ops.elementwise import sin_p
from polyax.runtime.contract.queue import HostBuffer

X = np.linspace(0.1, 3, 6, dtype=np.float32).reshape(2, 3)


def debugged(name: str) -> Any:
    return polyax.config.override(debug_backend=name)


def folder(error: BaseException) -> Path:
    found = re.search(r"text are in (\S+)$", str(error))
    assert found is not None
    return Path(found[1])


def program(x: Any) -> Any:
    y = jnp.cos(x) * 2
    z = jnp.sin(y)
    return z @ y.T, jnp.sort(z)


def test_the_kernel_whose_lowering_is_wrong_is_found() -> None:
    pytest.importorskip("polyax_hello_c")
    from polyax_kernels.ir.expr import op
    from polyax_kernels.lower.lowering import Kernels

    wrong = Kernels(lambda out, x, **_: op("cos", x.at(out.i)))
    with lowering({sin_p: wrong}), debugged("hello_c"), pytest.raises(Disagreement) as caught:
        polyax.jit(program)(X)
    text = str(caught.value)
    whose = "plugin 'hello_c.broken' of polyax-broken 1.2.3, by its lowering of sin,"
    assert text.startswith(f"{whose} computes program 'program' on hello_c:0 otherwise than the reference, in kernel '")
    assert "The remedy: POLYAX_DISABLE_PLUGINS leaves out what a plugin brings. " in text
    assert "sin" in text and f"Asked for at {__file__}" in text
    given = np.load(folder(caught.value) / "input0.npy", allow_pickle=False)
    want = np.load(folder(caught.value) / "want0.npy", allow_pickle=False)
    assert given.shape == (2, 3) and np.isfinite(want).all()
    assert "void" in (folder(caught.value) / "source.txt").read_text()
    assert "sin" in (folder(caught.value) / "equations.txt").read_text()


@pytest.mark.parametrize("form", ["run", "native"])
def test_a_library_call_is_its_lowerings(form: str) -> None:
    """Also if what a backend runs instead of it is wrong."""
    pytest.importorskip("polyax_hello_c")
    from polyax_kernels.lower.lowering import Call

    def wrong(ctx: Any, outs: Any, args: Any, **_: Any) -> None:
        """The second time alone, if another form of it is to be wrong."""
        outs[0][...] = np.sin(args[0]) + (ctx.device is not None or form == "run")

    with lowering({sin_p: Call(wrong)}), debugged("hello_c"), pytest.raises(Disagreement, match="in call 'sin'") as e:
        polyax.jit(program)(X)
    assert str(e.value).startswith("plugin 'hello_c.broken' of polyax-broken 1.2.3, by its lowering of sin, computes")


def test_what_a_lowering_reads_beside_its_operands_is_its_fault() -> None:
    pytest.importorskip("polyax_hello_c")
    from polyax_kernels.ir.expr import const, op
    from polyax_kernels.lower.lowering import Kernels

    wrong = Kernels(lambda out, x, **_: op("sin", x(out.i[0] + const(1), out.i[1])))
    checks = polyax.config.override(checks=False)
    with lowering({sin_p: wrong}), debugged("hello_c"), checks, pytest.raises(Disagreement) as caught:
        polyax.jit(lambda x: jnp.sin(x))(X)
    text = str(caught.value)
    assert text.startswith("plugin 'hello_c.broken' of polyax-broken 1.2.3, by its lowering of sin, of whose program")
    assert "nothing can be computed (IndexError" in text


def doubling(graph: Any, limits: Any) -> Any:
    """All kernels but those of sums store twice what they should."""
    from polyax_kernels.ir.expr import op
    from polyax_kernels.ir.graph import KernelNode, rebuilt
    from polyax_kernels.ir.kernel import Stage, Store

    def doubled(node: KernelNode) -> KernelNode:
        stages = [
            Stage(s.axes, tuple(Store(x.slot, x.indices, op("add", x.value, x.value)) for x in s.stores))
            for s in node.stages
        ]
        return rebuilt(node, tuple(stages), node.primitives)

    return graph.with_nodes([doubled(n) if isinstance(n, KernelNode) and not n.folds else n for n in graph.nodes])


def forgetting(graph: Any, limits: Any) -> Any:
    """Where one node reads what another gives, it reads the program's input of that type instead."""
    from polyax_kernels.ir.expr import load, rewrite
    from polyax_kernels.ir.graph import KernelNode, rebuilt
    from polyax_kernels.ir.kernel import map_stages

    (first, *_) = graph.inputs
    last = graph.nodes[-1]
    if not isinstance(last, KernelNode) or len(graph.nodes) < 3:
        return graph
    change = lambda x: load(first, x.dtype, x.args) if x.kind == "load" else None
    stages = map_stages(last.stages, lambda x: rewrite(x, change))
    return graph.with_nodes([*graph.nodes[:-1], rebuilt(last, stages, last.primitives)])


@pytest.mark.parametrize("run", [doubling, forgetting])
def test_the_fuser_whose_graph_is_wrong_is_found(run: Any) -> None:
    pytest.importorskip("polyax_hello_c")
    with fuser(run), debugged("hello_c"), pytest.raises(Disagreement) as caught:
        polyax.jit(lambda x: jnp.cos(jnp.sin(x) @ x) * 2)(X[:, :2])
    text = str(caught.value)
    assert text.startswith("plugin 'hello_c.broken' of polyax-broken 1.2.3, by its fuser 'mine', computes program"), (
        text
    )
    assert "The remedy: POLYAX_FUSERS can leave it out." in text


def test_kernels_that_a_backend_makes_wrong_are_its_own_fault() -> None:
    hello = pytest.importorskip("polyax_hello_c.backend")

    def wrong(self: Any, kernel: Any) -> str:
        return hello.HelloCBackend.source(self, kernel).replace("sin", "cos")

    own = {"__init__": lambda self: hello.HelloCBackend.__init__(self, "broken"), "source": wrong}
    kind = type("Broken", (hello.HelloCBackend,), {**own, "__module__": hello.__name__})
    with backend(kind), debugged("broken"), pytest.raises(Disagreement) as caught:
        polyax.jit(lambda x: jnp.sin(x) * 2)(X)
    assert str(caught.value).startswith(f"{OWNER} computes program '<lambda>' on broken:0"), caught.value
    assert "The remedy: update or uninstall polyax-broken" in str(caught.value)


def test_an_equation_of_a_backend_that_tells_nothing() -> None:
    def wrong(outs: list[HostBuffer]) -> Any:
        return [HostBuffer(b.data + (b.data.shape == (2, 2))) for b in outs]

    with backend(giving(wrong)), debugged("broken"), pytest.raises(Disagreement, match="dot_general") as caught:
        polyax.jit(program)(X)
    assert str(caught.value).startswith(f"{OWNER} computes program 'program' on broken:0 otherwise than the reference")


def test_callbacks_are_called_once() -> None:
    seen: list[float] = []

    def noted(x: Any) -> Any:
        polyax.debug.callback(lambda x: seen.append(float(x)), x[0, 0], ordered=True)
        return jnp.sin(x) @ x.T

    wrong = lambda outs: [HostBuffer(np.asarray(b.data + (b.data.shape == (2, 2)))) for b in outs]
    with backend(giving(wrong)), debugged("broken"), pytest.raises(Disagreement, match="dot_general"):
        polyax.jit(noted)(X)
    with backend(Working), debugged("broken"):
        np.testing.assert_allclose(polyax.jit(noted)(X), np.sin(X) @ X.T, rtol=1e-5)
        polyax.effects_barrier()
    np.testing.assert_allclose(seen, [X[0, 0]] * 2, rtol=1e-6)


def of_devices(count: int) -> Any:
    """A backend of several devices."""
    return polyax.config.override(num_cpu_devices=count)


def test_programs_of_several_devices_are_compared_where_these_do_not_meet() -> None:
    wrong = giving(lambda outs: [HostBuffer(outs[0].data + 1)])
    with of_devices(2), backend(wrong) as device, debugged("broken"):
        devices = device.client.devices()
        with pytest.raises(Disagreement, match="program 'pmap.<lambda>.' on broken:0 otherwise than the reference"):
            polyax.pmap(lambda x: x * 2, devices=devices)(X)
    with of_devices(2), backend(Working) as device, debugged("broken"):
        doubled = polyax.pmap(lambda x: x * 2, devices=device.client.devices())(X)
        np.testing.assert_array_equal(doubled, X * 2)


def told_at(call: Any) -> tuple[np.ndarray, str]:
    """What comes of a call, and what the user is told meanwhile."""
    with pytest.warns(UserWarning, match="isn't compared with the reference") as told:
        got = np.asarray(call())
    (warning,) = [w for w in told if "isn't compared" in str(w.message)]
    assert warning.filename == __file__
    return got, str(warning.message)


def test_who_is_not_compared_is_told_so() -> None:
    ask = lambda x: polyax.experimental.io_callback(lambda y: y + 1, X, x)
    with of_devices(2), backend(Working) as device, debugged("broken"):
        got, text = told_at(lambda: polyax.jit(lambda x: ask(x) * 2)(X))
        np.testing.assert_allclose(got, (X + 1) * 2)
        assert "program '<lambda>' on broken:0" in text and "effects (io_callback); take these out" in text
        devices = device.client.devices()
        got, text = told_at(lambda: polyax.pmap(lambda x: polyax.lax.psum(x, "i"), "i", devices=devices)(X))
        np.testing.assert_allclose(got, [X.sum(0)] * 2, rtol=1e-6)
        assert "its devices meet in collectives or effects; run it on one, by vmap" in text


def test_a_fault_of_the_whole_alone() -> None:
    def launch(right: Any, buffers: Any, queue: Any) -> Any:
        outs, token = right(buffers, queue)
        return (outs[::-1] if len(outs) == 2 and len(buffers) == 1 else outs), token

    with (
        backend(launching(launch)),
        debugged("broken"),
        pytest.raises(Disagreement, match="put together"),
    ):
        polyax.jit(lambda x: (jnp.sin(x), jnp.cos(x)))(X)


def test_inputs_that_were_not_donated_stay() -> None:
    def launch(right: Any, buffers: Any, queue: Any) -> Any:
        made = right(buffers, queue)
        buffers[0].data[...] = 0
        return made

    with backend(launching(launch)), debugged("broken"), pytest.raises(PluginError, match="wrote to input 0"):
        polyax.jit(jnp.sin)(X)


@pytest.mark.parametrize("name", ["broken", "hello_c"])
def test_what_is_right_passes(name: str) -> None:
    pytest.importorskip("polyax_hello_c")
    with backend(Working), debugged(name), polyax.default_device(polyax.devices(name)[0]):
        z = np.sin(np.cos(X) * 2)
        product, ordered = polyax.jit(program)(X)
        np.testing.assert_allclose(product, z @ (np.cos(X) * 2).T, rtol=1e-5)
        np.testing.assert_allclose(ordered, np.sort(z), rtol=1e-5)
        key = polyax.random.key(0)
        assert np.isfinite(polyax.grad(lambda x: polyax.random.normal(key, ()) * jnp.sum(x**2))(X)).all()
