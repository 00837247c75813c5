"""Products of operands that are rounded block by block, against the same in NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import polyax
from polyax import nn

NUMBERS = (((2,), (2,)), ((0,), (0,)))
RANDOM = np.random.default_rng(0)
L, R = (RANDOM.standard_normal((2, n, 64)).astype(np.float32) for n in (32, 64))
ONE = np.ones(1, np.float32)
CONFIGS = {mode: [nn.get_scaled_dot_general_config(mode, ONE)] * 3 for mode in ("mxfp8", "nvfp4")}


def rounded(x, mode):
    """As it is kept, along the last axis."""
    size, data = {"mxfp8": (32, ml_dtypes.float8_e4m3fn), "nvfp4": (16, ml_dtypes.float4_e2m1fn)}[mode]
    blocks = x.reshape(*x.shape[:-1], -1, size)
    most = float(ml_dtypes.finfo(data).max)
    scale = np.abs(blocks).max(-1, keepdims=True) / most
    if mode == "mxfp8":
        scale = np.exp2(np.ceil(np.log2(scale)))
    else:
        scale = scale.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    kept = np.clip(blocks / scale, -most, most).astype(data).astype(np.float32)
    return (kept * scale).reshape(x.shape)


@pytest.mark.parametrize("mode", CONFIGS)
def test_products(mode):
    found = nn.scaled_dot_general(L, R, NUMBERS, configs=CONFIGS[mode])
    expected = np.einsum("bmk,bnk->bmn", rounded(L, mode), rounded(R, mode))
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-5) and not np.allclose(
        found, np.einsum("bmk,bnk->bmn", L, R)
    )


@pytest.mark.parametrize("mode", CONFIGS)
def test_derivatives_are_rounded_too(mode):
    ct = RANDOM.standard_normal((2, 32, 64)).astype(np.float32)
    _, pull = polyax.vjp(lambda a, b: nn.scaled_dot_general(a, b, NUMBERS, configs=CONFIGS[mode]), L, R)
    by_left, by_right = pull(ct)
    along_rows = rounded(ct, mode), rounded(R.swapaxes(1, 2), mode)
    assert np.allclose(by_left, np.einsum("bmn,bkn->bmk", *along_rows), rtol=1e-4, atol=1e-4)
    along_columns = rounded(ct.swapaxes(1, 2), mode), rounded(L.swapaxes(1, 2), mode)
    assert np.allclose(by_right, np.einsum("bnm,bkm->bnk", *along_columns), rtol=1e-4, atol=1e-4)


def test_nothing_is_rounded_without_configs():
    assert np.allclose(nn.scaled_dot_general(L, R, NUMBERS), np.einsum("bmk,bnk->bmn", L, R), rtol=1e-4, atol=1e-4)
    with pytest.warns(DeprecationWarning, match="Backend selector, now ignored"):
        nn.scaled_dot_general(L, R, NUMBERS, implementation="cudnn")


def test_bad_input():
    with pytest.raises(ValueError, match="Unsupported mode: fp5"):
        nn.get_scaled_dot_general_config("fp5")
    with pytest.raises(ValueError, match="configs are for the product and its two derivatives, got 1"):
        nn.scaled_dot_general(L, R, NUMBERS, configs=CONFIGS["mxfp8"][:1])
    with pytest.raises(ValueError, match="blocks of 32 .* don't divide contracted dimensions of together 10"):
        nn.scaled_dot_general(L[..., :10], R[..., :10], NUMBERS, configs=CONFIGS["mxfp8"])
