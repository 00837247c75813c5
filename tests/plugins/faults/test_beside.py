"""``POLYAX_DEBUG_BACKEND`` runs programs beside the reference, and stops at the first step that differs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugins.faults.broken import OWNER, Working, backend, giving, launching, lowering

import polyax
import polyax.numpy as jnp
from polyax.ir.errors import Disagreement, PluginError
from polyax.ops.elementwise import sin_p
from polyax.runtime.contract.queue import HostBuffer

X = np.linspace(0.1, 3, 6, dtype=np.float32).reshape(2, 3)


def debugged(name: str) -> Any:
    return polyax.config.override(debug_backend=name)


def folder(error: BaseException) -> Path:
    found = re.search(r"are in (\S+)$", str(error))
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
    assert "computes program 'program' on hello_c:0 otherwise than the reference, in kernel '" in text, text
    assert "sin" in text and f"Asked for at {__file__}" in text
    given = np.load(folder(caught.value) / "input0.npy", allow_pickle=False)
    want = np.load(folder(caught.value) / "want0.npy", allow_pickle=False)
    assert given.shape == (2, 3) and np.isfinite(want).all()
    assert "void" in (folder(caught.value) / "source.txt").read_text()
    assert "sin" in (folder(caught.value) / "equations.txt").read_text()


def test_an_equation_of_a_backend_that_tells_nothing() -> None:
    def wrong(outs: list[HostBuffer]) -> Any:
        return [HostBuffer(b.data + (b.data.shape == (2, 2))) for b in outs]

    with backend(giving(wrong)), debugged("broken"), pytest.raises(Disagreement, match="dot_general") as caught:
        polyax.jit(program)(X)
    assert str(caught.value).startswith(f"{OWNER} computes program 'program' on broken:0 otherwise than the reference")


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

    with backend(launching(launch)), debugged("broken"), pytest.raises(PluginError, match="wrote to its input 0"):
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
