"""Attention and scaled products against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import nn
from support.agreeing import Agreeing, agreeing

R = np.random.default_rng(2)
Q, K, V = (R.standard_normal((2, n, h, 3)) for n, h in ((4, 4), (5, 2), (5, 2)))
BIAS, MASK = R.standard_normal((1, 4, 4, 5)), R.uniform(size=(2, 1, 4, 5)) < 0.7
LENGTHS = np.array([2, 4], np.int32), np.array([5, 3], np.int32)


def attention(
    q: Any, k: Any, v: Any, bias: Any = 0.0, allowed: Any = True, scale: float | None = None, queries: Any = None
) -> Any:
    """Straight from the definition: results, and logarithms of sums."""
    out, residual = np.zeros(q.shape), np.zeros(q.shape[:3])
    share = q.shape[2] // k.shape[2]
    bias, allowed = (np.broadcast_to(x, (q.shape[0], q.shape[2], q.shape[1], k.shape[1])) for x in (bias, allowed))
    for b, i, h in np.ndindex(q.shape[:3]):
        logits = k[b, :, h // share] @ q[b, i, h] * (q.shape[-1] ** -0.5 if scale is None else scale) + bias[b, h, i]
        logits = np.where(allowed[b, h, i], logits, -1e30)
        top = logits.max()
        residual[b, i, h] = top + np.log(np.exp(logits - top).sum())
        out[b, i, h] = np.exp(logits - residual[b, i, h]) @ v[b, :, h // share]
        if queries is not None and i >= queries[b]:
            out[b, i, h], residual[b, i, h] = 0, -np.inf
    return out, residual


I, J = np.arange(4)[:, None], np.arange(5)[None, :]
SHORT = (LENGTHS[0][:, None, None, None] > I) & (LENGTHS[1][:, None, None, None] > J)


def case(options: dict[str, Any], **told: Any) -> Agreeing:
    return agreeing(
        lambda q, k, v: nn.dot_product_attention(q, k, v, return_residual=True, **options),
        lambda q, k, v: attention(q, k, v, **told), Q, K, V, order=1,
    )  # fmt: skip


CASES: dict[str, Agreeing] = {
    "plain": case({}),
    "causal": case({"is_causal": True}, allowed=J <= I),
    "with bias and scale": case({"bias": BIAS, "scale": 2.0}, bias=BIAS, scale=2.0),
    "masked": case({"mask": MASK | (J == 0)}, allowed=MASK | (J == 0)),
    "in a window": case({"local_window_size": 1}, allowed=abs(I - J) <= 1),
    "in a window to one side": case({"local_window_size": (2, 0)}, allowed=(J <= I) & (J >= I - 2)),
    "of one example": agreeing(
        lambda q, k, v: nn.dot_product_attention(q, k, v, mask=MASK[:1] | (J == 0)),
        lambda q, k, v: attention(q[None], k[None], v[None], allowed=MASK[:1] | (J == 0))[0][0], Q[0], K[0], V[0],
    ),
    "scaled_matmul": agreeing(
        lambda x, y, s: nn.scaled_matmul(x, y, s, np.ones((2, 5, 2)), preferred_element_type=np.float64),
        lambda x, y, s: (x * np.repeat(s, 3, 2)) @ np.swapaxes(y, 1, 2),
        R.standard_normal((2, 3, 6)), R.standard_normal((2, 5, 6)), R.standard_normal((2, 3, 2)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_agrees(name: str) -> None:
    CASES[name].check()


def test_sequences_of_several_lengths() -> None:
    with polyax.enable_x64(True):
        got = nn.dot_product_attention(
            Q, K, V, query_seq_lengths=LENGTHS[0], key_value_seq_lengths=LENGTHS[1], return_residual=True
        )
    for a, b in zip(got, attention(Q, K, V, allowed=SHORT, queries=LENGTHS[0]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_a_query_that_sees_nothing_gets_the_mean() -> None:
    out = nn.dot_product_attention(Q, K, V, mask=np.zeros((1, 1, 1, 1), bool))
    np.testing.assert_allclose(out[:, 0, 0], V[:, :, 0].mean(1), rtol=1e-5)


def test_narrow_types_are_computed_in_float32() -> None:
    x = jnp.asarray(Q, "bfloat16")
    out = nn.dot_product_attention(x, x, x, implementation="xla")
    assert out.dtype == jnp.bfloat16
    np.testing.assert_allclose(out.astype("float32"), attention(*[np.asarray(x, "float32")] * 3)[0], atol=0.03)


SCALES = np.ones((2, 3, 2))
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "another batch": (lambda: nn.dot_product_attention(Q, K[:1], V), ValueError, r"key shape should be \[2, keys"),
    "other values": (lambda: nn.dot_product_attention(Q, K, V[:, :4]), ValueError, "value shape should be"),
    "three groups": (lambda: nn.dot_product_attention(Q, *[np.ones((2, 5, 3, 3))] * 2), ValueError, "4 vs 3"),
    "another dtype": (lambda: nn.dot_product_attention(Q, K.astype("float16"), V), ValueError, "key dtype should be"),
    "a vector": (lambda: nn.dot_product_attention(Q[0, 0, 0], K, V), ValueError, "query must have the shape"),
    "a mask of floats": (lambda: nn.dot_product_attention(Q, K, V, mask=BIAS), ValueError, "mask dtype should be bool"),
    "lengths of others": (
        lambda: nn.dot_product_attention(Q, K, V, query_seq_lengths=np.ones(3, int)), ValueError, r"should be \[2\]",
    ),
    "broken lengths": (
        lambda: nn.dot_product_attention(Q, K, V, key_value_seq_lengths=np.ones(2)), ValueError, "should be int32",
    ),
    "no such implementation": (lambda: nn.dot_product_attention(Q, K, V, implementation="x"), ValueError, "option: x"),
    "cudnn": (lambda: nn.dot_product_attention(Q, K, V, implementation="cudnn"), RuntimeError, "cuDNN is not detected"),
    "a matrix to scale": (lambda: nn.scaled_matmul(*[np.ones((2, 2))] * 4), ValueError, "3-dimensional"),
    "other lengths": (
        lambda: nn.scaled_matmul(np.ones((2, 3, 4)), np.ones((2, 3, 6)), SCALES, SCALES), ValueError, "inputs a and b",
    ),
    "other blocks": (
        lambda: nn.scaled_matmul(*[np.ones((2, 3, 6))] * 2, SCALES, SCALES[..., :1]), ValueError, "scales to have",
    ),
    "blocks that don't divide": (
        lambda: nn.scaled_matmul(*[np.ones((2, 3, 5))] * 2, SCALES, SCALES), ValueError, "divide its last dimension",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_told(name: str) -> None:
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call()
