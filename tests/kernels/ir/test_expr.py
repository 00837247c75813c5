"""Expressions: one object for equal ones, linear time on shared and on deep ones."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from kernels.building import F32, elementwise, result_of

from polyax_kernels.emit.c import c_source
from polyax_kernels.emit.numpy import run
from polyax_kernels.ir.expr import Axis, consing, const, fold, index, load, make, op, param, postorder, rewrite, where
from polyax_kernels.ir.kernel import Kernel, Operand, Schedule, Stage, Store, map_kernel
from polyax_kernels.ir.keys import structural_key
from polyax_kernels.ir.simplify import simplify
from polyax_kernels.passes.canonical import canonical


def test_equal_expressions_are_one_object() -> None:
    with consing():
        i = index(Axis(4))
        assert i * 2 + 1 is i * 2 + 1
        assert load(0, F32, (i,)) is load(0, F32, (i,)) and load(0, F32, (i,)) is not load(1, F32, (i,))
        k = Axis(3)
        folds = [fold("add", (k,), (const(0, F32),), (load(0, F32, (index(k),)),)) for _ in range(2)]
        assert folds[0] is folds[1]


def test_constants_are_told_apart_by_their_bits() -> None:
    with consing():
        assert const(0.0, F32) is not const(-0.0, F32)
        assert const(math.nan, F32) is const(math.nan, F32)
        assert const(1, "int32") is not const(True, "bool") and const(1, "int32") is not const(1, "int64")
        assert const(-1, "uint8").attr == 255 and const(0.1, F32).attr == float(np.float32(0.1))


def test_expressions_need_a_table() -> None:
    with pytest.raises(AssertionError, match="consing"):
        make("const", F32, (), 1.0)


def test_operators() -> None:
    with consing():
        x = param(0, "float32")
        assert repr(1 - x / 2) == "sub(1.0, div(p0, 2.0))"
        assert repr(where(x < 0, -x, x)) == "select(lt(p0, 0.0), neg(p0), p0)"
        i = param(1)
        assert repr((i % 4 + i // 4) << 2) == "shift_left(add(mod(p1, 4), floordiv(p1, 4)), 2)"


def test_values_of_expressions_are_not_known_yet() -> None:
    with consing():
        x = param(0, "float32")
        with pytest.raises(TypeError, match=r"lt\(p0, 0.0\) isn't known while a kernel is built: choose with op\("):
            bool(x < 0)


def test_diamonds_take_linear_time() -> None:
    started = time.thread_time()
    with consing():
        x = param(0, "float32")
        for _ in range(200):  # written out, this has 2**200 leaves
            x = x + x
        y = rewrite(x, lambda e: e * 1.5 if e.kind == "param" else None)
        assert len(postorder(y)) == 202 + 1 and len(repr(y)) < 2000
    assert time.thread_time() - started < 1


def test_ten_thousand_nodes_without_recursion() -> None:
    x = np.linspace(-1, 1, 8).astype(F32)

    def chain(v):
        y = v
        for _ in range(5000):
            y = op("sin", y) + v
        return y

    with consing():
        kernel, params = canonical(elementwise(chain, x))
        assert len(c_source(kernel, Schedule()).splitlines()) > 10_000 and structural_key(kernel)
        out = np.zeros(8, F32)
        run(kernel, [x, out], params)
    want = x
    for _ in range(5000):
        want = np.sin(want) + x
    np.testing.assert_allclose(out, want, rtol=1e-4)
    assert result_of(elementwise_of(x)).shape == (8,)


def elementwise_of(x: np.ndarray):
    with consing():
        return elementwise(lambda v: v, x)


def test_a_kernel_that_nothing_changes_is_the_same_object() -> None:
    axis = Axis(8)
    with consing():
        stage = Stage((), (Store(1, (index(axis),), load(0, F32, (index(axis),)) + 1.0),))
        kernel = Kernel((axis,), (stage,), (Operand((8,), F32, "in"), Operand((8,), F32, "out")))
        assert map_kernel(kernel, lambda x: x) is kernel
        assert simplify(kernel) is kernel
