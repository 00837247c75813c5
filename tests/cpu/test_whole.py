"""Kernels as straight code on whole arrays: bit by bit what they compute elsewhere, and what their code is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax import numpy as jnp
from polyax.ir.config import config
from polyax_cpu import compiler, loops, processors
from polyax_cpu.emit import whole

pytestmark = pytest.mark.usefixtures("native")
R = np.random.default_rng(5)
masks = pytest.mark.skipif(not processors.host().has_masks, reason="sums have one order where vectors have masks")


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    with config.override(enable_x64=True), polyax.default_device(polyax.devices("cpu")[0]):
        yield


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each kernel of a loop whether it is written so."""
    found: list[bool] = []

    def suits(kernel: Any) -> bool:
        found.append(whole.suits(kernel))
        return found[-1]

    monkeypatch.setattr(loops, "suits", suits)
    return found


def same_bits(f: Callable[..., Any], *xs: np.ndarray) -> None:
    """In a loop over ``xs``, and called with each of them."""
    want = np.stack([np.asarray(polyax.jit(f)(x)) for x in xs])
    got = np.asarray(polyax.jit(lambda xs: lax.scan(lambda c, x: (c, f(x)), 0.0, xs)[1])(np.stack(xs)))
    assert got.dtype == want.dtype and got.tobytes() == want.tobytes()


def two(*shape: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    x, y = (R.uniform(-1, 1, shape).astype(dtype) for _ in range(2))
    return x, y


KERNELS: dict[str, Callable[[Any], Any]] = {
    "turned": lambda x: x.T * 2,
    "reversed": lambda x: x[::-1] + x,
    "padded": lambda x: jnp.pad(x, 1) + 1,
    "joined": lambda x: jnp.concatenate([x, x * 2]) + 1,
    "rolled": lambda x: jnp.roll(x, 1, -1)[:, None] - x[:, :, None],
    "cut": lambda x: x[:, ::2] * 3,
    "a row set": lambda x: x.at[0].set(x[-1] * 2),
    "a column added to": lambda x: x.at[:, 0].add(1.0),
    "chosen": lambda x: jnp.where(x > 0, x, -x * 0.5),
    "numbered": lambda x: x * jnp.arange(x.shape[-1]) - jnp.eye(*x.shape, dtype=x.dtype),
    "whole numbers": lambda x: (x * 10).astype("int32") // 3 + (x * 9).astype("int8") % 3,
    "conditions": lambda x: (x > 0.5).any(0) & (x < 0.9).all(),
    "narrow": lambda x: (x.astype("bfloat16") * 1.5).sum(-1) + jnp.tanh(x.astype("float16")).sum(),
    "extrema": lambda x: x.max(-1) - x.min(),
    "products": lambda x: x.prod(-1)[:, None] * x,
    "rows": lambda x: polyax.nn.softmax(x, -1),
    "columns": lambda x: (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-3),
    "distances": lambda x: jnp.exp(-((x[None] - x[:, None]) ** 2).sum(-1)).sum(1),
    "gradients": lambda x: polyax.grad(lambda y: y.max(-1).sum() + jnp.log(jnp.exp(y).sum(0)).sum())(x),
}


@masks
@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (4, 4)])
@pytest.mark.parametrize("name", KERNELS)
def test_values_are_those_of_other_code(name: str, shape: tuple[int, int], dtype: str, chosen: list[bool]) -> None:
    same_bits(KERNELS[name], *two(*shape, dtype=dtype))
    assert chosen and all(chosen)


@masks
@pytest.mark.parametrize("count", [1, 7, 8, 15, 16, 17, 31, 33, 40, 48, 63, 64])
def test_sums_have_the_order_of_other_code(count: int, dtype: str, chosen: list[bool]) -> None:
    same_bits(lambda x: jnp.sin(x).sum(), *two(count, dtype=dtype))
    assert chosen and all(chosen)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "what goes on from the element before": lambda x: jnp.cumsum(x, 0) * 2,
    "an element whose number is computed": lambda x: x[jnp.argmax(x[0])] + x,
    "more than registers hold": lambda x: jnp.concatenate([x] * 6) + 1,
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_kernels_are_written_as_loops(name: str, dtype: str, chosen: list[bool]) -> None:
    same_bits(REFUSED[name], *two(4, 4, dtype=dtype))
    assert not all(chosen)


def test_small_arrays_stay_in_registers(code: list[str]) -> None:
    """Of sizes that are no powers of two, read by rows and by columns: of the locals of the loop none is left, and its
    turns read and write nothing."""

    def body(_: Any, c: Any) -> Any:
        x, v = c
        d = x[None] - x[:, None]
        v = v + 0.01 * (d / ((d**2).sum(-1) + 0.1)[..., None] ** 1.5).sum(1)
        return x + 0.01 * v, v

    x, v = two(3, 3, dtype="float32")
    polyax.jit(lambda x, v: lax.fori_loop(0, 9, body, (x, v)))(x, v)[0].block_until_ready()
    text = str(compiler.optimize(code[-1]))
    turn = text[text.index("\nturn") : text.index("\nend")]
    assert "alloca" in code[-1] and "alloca" not in text
    assert "fdiv" in turn and not any(word in turn for word in (" load ", " store ", "@llvm.mem"))
