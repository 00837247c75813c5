"""The whole-graph backend: one session per part, the rest on the host, and networks that learn there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("polyax_onnx")
pytest.importorskip("onnxruntime")

import polyax as jax
import polyax.numpy as jnp
from polyax import lax
from polyax.backend import NoLowering
from polyax_onnx import engine

LAYOUT = ("NHWC", "HWIO", "NHWC")
X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(autouse=True)
def on_onnx() -> Iterator[None]:
    with jax.default_device("onnx"):
        yield


def steps(f: Any, *args: Any) -> list[tuple[str, tuple[str, ...]]]:
    return [(k.name, k.primitives) for k in jax.jit(f).lower(*args).compile().report.kernels]


def test_a_program_is_one_model_without_its_calls() -> None:
    f = jax.jit(lambda x: jax.nn.relu(jax.jit(lambda y: y * 2)(x) @ x.T) + 1)
    ((where, primitives),) = steps(f, X)
    assert where == "engine" and "dot_general" in primitives and "jit" not in primitives
    np.testing.assert_allclose(f(X), np.maximum(2 * X @ X.T, 0) + 1, rtol=1e-6)


def test_what_the_engine_lacks_runs_on_the_host() -> None:
    def f(x: Any) -> Any:
        return jnp.sin(lax.nextafter(jnp.abs(x) + 1, 9.0) * 2)

    with jax.config.override(host_fallback="allow"):
        assert [where for where, _ in steps(f, X)] == ["engine", "host", "engine"]
        got = jax.jit(f)(X)
    with jax.default_device("reference"):
        np.testing.assert_allclose(got, f(X), rtol=1e-5, atol=1e-6)
    with pytest.raises(NoLowering, match="onnx can't run 'nextafter': ONNX has no operator for it"):
        jax.jit(lambda x: lax.nextafter(x, 9.0) + 3)(X)


SPECIAL = {
    "erfc": [-3.0, -0.5, 0.0, 0.5, 3.0, 9.5, 20.0, np.inf, np.nan],
    "erf_inv": [-1.0, -0.999, -0.5, 0.0, 1e-20, 0.3, 0.99999, 1.0, 2.0, np.nan],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_formulas_stand_for_what_onnx_has_no_operator_for(name: str) -> None:
    fun, x = getattr(lax, name), np.array(SPECIAL[name], np.float32)
    assert [where for where, _ in steps(fun, x)] == ["engine"]
    with jax.default_device("reference"):
        want = np.asarray(jax.jit(fun)(x))
    np.testing.assert_allclose(jax.jit(fun)(x), want, rtol=3e-7, atol=1e-20)
    with jax.enable_x64(True), pytest.raises(NoLowering, match="no more exact than float32"):
        jax.jit(fun)(x.astype(np.float64))


def test_sums_of_exponentials_and_products_of_truth_values() -> None:
    x = np.array([-np.inf, -np.inf, 1e3, 1e3, np.inf, np.nan], np.float32)
    want = [-np.inf, -np.inf, 1e3, 1e3 + np.log(2), np.inf, np.nan]
    np.testing.assert_allclose(jax.jit(lax.cumlogsumexp)(x), want, rtol=1e-6)
    a, b = X > 0, X > 1
    np.testing.assert_array_equal(jax.jit(lax.dot)(a, b.T), a @ b.T)
    np.testing.assert_allclose(jax.jit(lax.pow)(X, np.int32(-3)), X.astype(float) ** -3, rtol=1e-6)


def test_its_report_tells_of_each_equation() -> None:
    report = jax.jit(lambda x: jnp.sort(x @ x.T)).lower(X).compile().report
    assert sorted(n for k in report.kernels for n in k.equations) == list(
        range(sum(len(k.primitives) for k in report.kernels))
    )
    assert report.flops >= 2 * 3 * 4 * 3 and report.bytes_unfused >= report.bytes_moved > 0
    assert [b.role for b in report.buffers] == ["input", "result"] and sum(
        report.phases.values()
    ) == report.compile_seconds


def test_what_is_made_of_others_is_decomposed() -> None:
    def f(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 2), "VALID")

    ((where, primitives),) = steps(f, X)
    assert where == "engine" and "reduce_window_max" not in primitives
    np.testing.assert_array_equal(jax.jit(f)(X), X.reshape(3, 2, 2).max(-1))


def test_loops_turn_over_models() -> None:
    def f(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda i, x: lax.cond(i % 2 == 0, jnp.sin, jnp.cos, x) + i, x)

    want = X.astype(np.float64)
    for i in range(5):
        want = (np.sin(want) if i % 2 == 0 else np.cos(want)) + i
    np.testing.assert_allclose(jax.jit(f)(X), want, rtol=1e-5)
    carry, ys = lax.scan(lambda c, x: (c + x, c * x), jnp.zeros(4), X, reverse=True)
    np.testing.assert_allclose(carry, X.sum(0), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ys[2], np.zeros(4), atol=1e-6)


def loss(params: Any, x: Any, y: Any) -> Any:
    (w, b), (v, c) = params
    logits = jnp.tanh(x @ w + b) @ v + c
    return -(jax.nn.log_softmax(logits) * y).sum() / len(x)


def loss_and_step(w: Any, b: Any, v: Any, c: Any, x: Any, y: Any, rate: float) -> Any:
    """The same in NumPy, by hand, in float64."""
    h = np.tanh(x @ w + b)
    logits = h @ v + c
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    d = (p - y) / len(x)
    e = d @ v.T * (1 - h * h)
    grads = (x.T @ e, e.sum(0), h.T @ d, d.sum(0))
    return -(np.log(p) * y).sum() / len(x), [a - rate * g for a, g in zip((w, b, v, c), grads)]


def test_a_network_learns_as_in_float64() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(32, 8)), np.eye(3)[rng.integers(0, 3, 32)]
    shapes = [(8, 16), (16,), (16, 3), (3,)]
    exact = [rng.normal(size=s) * 0.3 for s in shapes]
    w, b, v, c = (a.astype(np.float32) for a in exact)
    params: Any = ((w, b), (v, c))

    @jax.jit
    def step(params: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    for _ in range(20):
        value, params = step(params, x.astype(np.float32), y.astype(np.float32))
        want, exact = loss_and_step(*exact, x, y, 0.1)
        np.testing.assert_allclose(value, want, rtol=1e-4)
    for got, a in zip(jax.tree.leaves(params), exact, strict=True):
        np.testing.assert_allclose(got, a, rtol=1e-3, atol=1e-4)


def test_convolutions_sorts_and_gathers() -> None:
    image = np.random.default_rng(1).normal(size=(2, 5, 6, 3)).astype(np.float32)
    kernel = np.random.default_rng(2).normal(size=(3, 3, 3, 4)).astype(np.float32)

    def f(x: Any, k: Any) -> Any:
        y = lax.conv_general_dilated(x, k, (2, 1), ((1, 2), (-1, 3)), (1, 2), (2, 1), LAYOUT)
        return y, jnp.sort(x, axis=1), jnp.argsort(-x, axis=2), x[:, jnp.array([4, 0, 1])], jnp.cumprod(x, 2)

    got = jax.jit(f)(image, kernel)
    with jax.default_device("reference"):
        for a, b in zip(got, f(image, kernel), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_a_dtype_that_the_engine_lacks_says_so() -> None:
    with pytest.raises(TypeError, match="can't live on onnx:0: ONNX Runtime has no operators on complex64"):
        jnp.zeros(3, jnp.complex64)


def test_errors_of_the_engine_are_blamed_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: Any, **__: Any) -> Any:
        raise engine.FAILURES[0]("out of order")

    step = jax.jit(lambda x: jnp.sinh(x) * 3 - 1)
    monkeypatch.setattr(engine.onnxruntime, "InferenceSession", refuses)
    monkeypatch.setattr(engine, "why_not", lambda eqn: None)
    with pytest.raises(engine.FAILURES[0], match="out of order") as caught:
        step(X)
    (note,) = [n for n in caught.value.__notes__ if n.startswith("In plugin")]
    assert "plugin 'onnx' of polyax-onnx" in note and "primitives sinh, mul, sub" in note
