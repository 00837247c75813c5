"""The teaching backend: that it finds its compiler or says so, compiles once, and computes what NumPy does."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.runtime.contract.cache import CACHES
from polyax_hello_c import compiler, plugin

ROOT = Path(__file__).parents[2] / "plugins/hello_c"

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.fixture
def device() -> Iterator[polyax.Device]:
    (device, *_) = polyax.devices("hello_c")
    with polyax.default_device(device):
        yield device


def test_it_works_here() -> None:
    assert plugin.why_not() is None


def test_a_missing_compiler_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    reason = plugin.why_not()
    assert reason is not None and "no-such-compiler" in reason and "install" in reason


def test_a_program_that_is_refused_is_shown_with_the_complaint() -> None:
    with pytest.raises(compiler.CompileError, match=r"(?s)error.*The program:\nint f\(\) \{ return nonsense; \}"):
        compiler.load("int f() { return nonsense; }")


def test_code_is_kept_on_disk() -> None:
    source = f"int seven() {{ return 7; }} // {np.random.default_rng().integers(1 << 60)}"
    before = CACHES["hello_c"].stats()
    assert compiler.load(source).seven() == 7 and compiler.load(source).seven() == 7
    after = CACHES["hello_c"].stats()
    assert (after.hits - before.hits, after.misses - before.misses) == (1, 1)


def test_target_names_version_and_instruction_set() -> None:
    assert "__VERSION__" in compiler.target() and "-march=native" in compiler.target()


def test_a_fused_program(device: polyax.Device) -> None:
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((5, 3)).astype(np.float32), rng.standard_normal((4, 5)).astype(np.float32)

    def loss(w: jnp.ndarray) -> jnp.ndarray:
        return jnp.sum(jnp.tanh(jnp.dot(x, w)))

    value, grad = polyax.jit(polyax.value_and_grad(loss))(w)
    y = np.tanh(x @ w)
    np.testing.assert_allclose(value, y.sum(), rtol=1e-5)
    np.testing.assert_allclose(grad, x.T @ (1 - y * y), rtol=1e-4, atol=1e-5)
    assert {d.platform for d in grad.devices()} == {"hello_c"}


def test_integers_wrap_and_divide_as_elsewhere(device: polyax.Device) -> None:
    x = jnp.array([7, -7, 5, -(2**31)], dtype=jnp.int32)
    y = jnp.array([2, 2, 0, -1], dtype=jnp.int32)
    np.testing.assert_array_equal(polyax.lax.div(x, y), [3, -3, -1, -(2**31)])
    np.testing.assert_array_equal(x * 2**30, np.array([7, -7, 5, -(2**31)], np.int32) * np.int32(2**30))


def test_gaps_have_kinds_and_reasons() -> None:
    gaps = tomllib.loads((ROOT / "gaps.toml").read_text())["gap"]
    assert gaps and all(g["kind"] in ("never", "notyet", "notimpl") and g["what"] and g["reason"] for g in gaps)
