"""Products of narrow numbers: in float32, rounded once, by the library where there is one."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax
from polyax_kernels.lower import widened

RNG = np.random.default_rng(0)
NARROW = ("bfloat16", "float16")


def narrow(dtype: str, *shape: int) -> Any:
    return jnp.asarray(RNG.standard_normal(shape).astype(np.float32)).astype(dtype)


def exact(x: Any) -> np.ndarray:
    return np.asarray(x).astype(np.float64)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("wanted", [None, np.float32])
def test_matrices(dtype: str, wanted: Any) -> None:
    x, y = narrow(dtype, 40, 70), narrow(dtype, 70, 50)
    got = jax.jit(lambda x, y: jnp.matmul(x, y, preferred_element_type=wanted))(x, y)
    want = exact(x) @ exact(y)
    assert got.dtype == (wanted or dtype)
    rounding = np.float32(1e-6) if wanted else ml_dtypes.finfo(dtype).eps
    np.testing.assert_allclose(exact(got), want, rtol=float(rounding), atol=2e-5)


@pytest.mark.parametrize("dtype", NARROW)
def test_convolutions(dtype: str) -> None:
    x, w = narrow(dtype, 2, 3, 12, 12), narrow(dtype, 4, 3, 3, 3)
    convolved = jax.jit(lambda x, w: lax.conv(x, w, (1, 1), "SAME"))
    want = convolved(x.astype(np.float32), w.astype(np.float32))
    assert convolved(x, w).dtype == dtype
    np.testing.assert_array_equal(exact(convolved(x, w)), exact(want.astype(dtype)))


@pytest.mark.parametrize("dtype", NARROW)
def test_gradients(dtype: str) -> None:
    x, y = narrow(dtype, 40, 70), narrow(dtype, 70, 50)
    got = jax.grad(lambda x: jnp.sum((x @ y).astype(np.float32)))(x)
    want = np.broadcast_to(exact(y).sum(1), (40, 70))
    assert got.dtype == dtype
    np.testing.assert_allclose(exact(got), want, rtol=float(ml_dtypes.finfo(dtype).eps), atol=2e-5)


def test_the_library_multiplies() -> None:
    x = narrow("bfloat16", 64, 64)
    explained = jax.explain(jax.jit(lambda x: x @ x))(x)
    assert [k.kind for k in explained.report.kernels] == ["kernel", "call", "kernel"]


@pytest.mark.parametrize(
    ("dtypes", "params", "reason"),
    [
        (("float32", "float32"), {}, "narrow"),
        (("bfloat16", "float32"), {}, "narrow"),
        (("float16", "float16"), {"preferred_element_type": np.float64}, "float64"),
        (("bfloat16", "bfloat16"), {}, None),
    ],
)
def test_who_declines(dtypes: tuple[str, str], params: dict[str, Any], reason: str | None) -> None:
    found = widened.why_not([jax.core.ShapedArray((4, 4), jnp.dtype(d)) for d in dtypes], params)
    assert found is None if reason is None else reason in (found or "")
