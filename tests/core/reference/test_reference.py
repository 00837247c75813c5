"""The reference backend: right, asynchronous, and strict about its own rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.ir.errors import NoLowering
from polyax.ir.primitive import Primitive
from polyax.ops.elementwise import exp_p, sin_p
from polyax.reference import interpreter, rules
from polyax.runtime.plugins.registry import register, registry
from support.process import output


@pytest.fixture(autouse=True)
def on_reference() -> Any:
    with jax.default_device("reference"):
        yield


def failing(*_: Any, **__: Any) -> Any:
    raise FloatingPointError("a computation that fails")


def test_program_with_calls_constants_and_several_results() -> None:
    table = jnp.arange(6.0).reshape(2, 3)

    @jax.jit
    def f(x: Any) -> Any:
        y = jax.jit(lambda x: x @ table.T)(x)
        return {"sum": y.sum(), "y": y, "x": x, "one": 1.0}

    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    got = f(x)
    want = x @ np.arange(6, dtype=np.float32).reshape(2, 3).T
    np.testing.assert_allclose(got["y"], want, rtol=1e-6)
    np.testing.assert_allclose(got["sum"], want.sum(), rtol=1e-5)
    np.testing.assert_array_equal(got["x"], x)


def test_error_of_a_long_computation_comes_with_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rules.RULES, sin_p, failing)
    x = jnp.ones((1000, 1000))
    y = jax.jit(lambda x: jnp.sin(x) * 3.5)(x)
    z = y + 1  # waits behind it, and fails as well
    for failed in (y, z):
        with pytest.raises(FloatingPointError, match="a computation that fails") as caught:
            failed.block_until_ready()
        (note,) = [n for n in caught.value.__notes__ if n.startswith("In plugin 'reference' of polyax")]
        assert "program '<lambda>' was run on reference:0: primitives sin; asked for at" in note and __file__ in note
    np.testing.assert_array_equal(np.asarray(x + 1)[0, :3], [2, 2, 2], "the queue goes on")


def test_rule_of_a_wrong_type_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rules.RULES, exp_p, lambda x, **_: [np.float64(1)])
    with pytest.raises(TypeError, match=r"NumPy rule of exp gave float64\[\], its type is float32\[3\]"):
        jnp.exp(jnp.ones(3)).block_until_ready()


def test_primitive_without_a_rule() -> None:
    p = Primitive("test_unheard_of")
    p.abstract_eval = lambda x, **_: [x]
    with pytest.raises(NoLowering, match="no NumPy rule for 'test_unheard_of'"):
        p.bind_all(jnp.ones(3))
    with pytest.raises(NoLowering, match="no NumPy rule for 'test_unheard_of'"):
        interpreter.run_on_host(p, [np.ones(3)], {})


def test_run_on_host() -> None:
    (got,) = interpreter.run_on_host(sin_p, [np.float32([0, 1])], {})
    np.testing.assert_allclose(got, np.sin(np.float32([0, 1])), rtol=1e-6)


def test_report_lists_what_ran() -> None:
    events: list[Any] = []
    hook = jax.hookimpl(lambda event: events.append(event))
    plugin = type("Listener", (), {"polyax_compiled": staticmethod(hook)})
    record = register(plugin, "reference.listener")
    try:
        jax.jit(lambda x: jnp.sin(x) + x)(jnp.ones(7)).block_until_ready()
    finally:
        registry.unregister(record)
    kernels = events[-1].executable.report().kernels
    assert [k.name for k in kernels] == ["sin", "add"] and kernels[1].bytes_moved == 7 * 4 * 3


def test_virtual_devices_compute_at_the_same_time() -> None:
    program = """
        import polyax as jax, polyax.numpy as jnp, numpy as np
        f = jax.jit(lambda x: jnp.sin(jnp.sin(jnp.sin(x))).sum())
        xs = [jax.device_put(np.ones((1000, 1000), np.float32), d) for d in jax.devices()]
        jax.block_until_ready([f(x) for x in xs])  # compiled
        results = [f(x) for x in xs]
        busy = sum(not r.is_ready() for r in results)
        print(len({r.device for r in results}), busy > 1, len({float(r) for r in results}))
    """
    assert output(program, POLYAX_PLATFORMS="reference", POLYAX_NUM_CPU_DEVICES="8") == "8 True 1"
