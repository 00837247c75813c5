"""float32 to bfloat16, whatever lies beside it: vectors have ways of their own."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.ir.dtypes import bfloat16
from polyax_cpu.emit.emitter import add_kernel
from polyax_cpu.llvm import Module
from polyax_cpu.processors import host
from polyax_kernels.emit.schedule import choose
from polyax_kernels.ir.expr import Axis, cast, consing, index, load
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store

LOWER = [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF]
"""Lower halves: what is kept as it is, what is rounded down, ties, what is rounded up."""


def wanted(x: np.ndarray) -> np.ndarray:
    """By whole numbers: half of the distance to the next one, less if the upper half is even, and a carry."""
    bits = x.view(np.uint32).astype(np.uint64)
    carried = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0, carried).astype(np.uint16)


@pytest.mark.parametrize("lower", LOWER)
@pytest.mark.parametrize("width", [1 << 16, 16, 7, 1])
def test_every_upper_half(lower: int, width: int) -> None:
    bits = np.arange(1 << 16, dtype=np.uint32) << 16 | lower
    x = bits.view(np.float32)[:: max(1, 4096 // width)][:width] if width < 1 << 16 else bits.view(np.float32)
    with polyax.default_device("cpu"):
        got = np.asarray(polyax.jit(lambda x: x.astype(jnp.bfloat16))(x)).view(np.uint16)
        back = np.asarray(polyax.jit(lambda x: x.astype(jnp.bfloat16).astype(jnp.float32))(x))
    odd = np.isnan(x)
    np.testing.assert_array_equal(got[~odd], wanted(x)[~odd])
    assert np.isnan(got[odd].view(bfloat16).astype(np.float32)).all()
    np.testing.assert_array_equal(back, got.view(bfloat16).astype(np.float32))


@pytest.mark.skipif(host().vector_bits < 512, reason="processors with AVX-512 have an instruction for it")
def test_vectors_bring_back_nan_without_a_test() -> None:
    axis = Axis(4096)
    operands = Operand((4096,), np.dtype("float32"), "in"), Operand((4096,), bfloat16, "out")
    with consing():
        value = cast(load(0, np.dtype("float32"), (index(axis),)), bfloat16)
        kernel = Kernel((axis,), (Stage((), (Store(1, (index(axis),), value),)),), operands)
        module = Module(["narrow"])
        add_kernel(module, kernel, choose(kernel), "narrow")
    text = module.text()
    assert "call <16 x float> @llvm.x86.avx512.mask.fixupimm" in text
    assert "fcmp une <16" not in text and "fcmp une <32" not in text
