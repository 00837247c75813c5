"""Debugging programs on several devices. Run by ``test_debug.py``."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax

N = len(polyax.devices())
pytestmark = pytest.mark.skipif(N < 2, reason="run by test_debug.py, with several devices")


def log_of(x):
    return jnp.log(x - 2)


def test_a_nan_on_one_device_is_found():
    x = np.float32([3, 1, 4, 5])
    with polyax.debug_nans(True), pytest.raises(FloatingPointError, match="encountered in log") as caught:
        polyax.pmap(lambda x: lax.psum(log_of(x), "i"), "i")(x)
    assert f"{__file__}:{log_of.__code__.co_firstlineno + 1}" in str(caught.value)
    with polyax.debug_nans(True):
        polyax.pmap(log_of)(x[[0, 2, 3]])


def test_each_device_prints(capsys):
    def f(x):
        polyax.debug.print("x = {}", x)
        return x

    polyax.pmap(f)(np.arange(N))
    polyax.effects_barrier()
    assert sorted(capsys.readouterr().out.split("\n")) == ["", *(f"x = {n}" for n in range(N))]


def test_errors_of_programs_without_results_are_not_lost():
    def fail(n):
        if n == 1:
            raise LookupError("no such device")

    polyax.pmap(lambda x: polyax.debug.callback(fail, x))(np.arange(N))
    with pytest.raises(polyax.errors.JaxRuntimeError, match="LookupError: no such device"):
        polyax.effects_barrier()
    polyax.effects_barrier()


def test_order_is_refused():
    with pytest.raises(ValueError, match="ordered effects are not supported for more than 1 device"):
        polyax.pmap(lambda x: polyax.debug.print("{}", x, ordered=True))(np.arange(N))
