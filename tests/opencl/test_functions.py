"""Elementary functions on an OpenCL device against mpmath, and that processors get our own."""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest

from polyax_kernels.emit.functions.table import TABLE
from polyax_opencl import functions
from polyax_opencl.emitter import HEADER
from polyax_opencl.functions import BINARY
from polyax_opencl.probe import cl
from polyax_opencl.runtime import OpenCLRuntime

RNG = np.random.default_rng(5)
EXACT: dict[str, Callable[..., mp.mpf]] = {
    "exp": mp.exp, "exp2": lambda x: mp.mpf(2) ** x, "expm1": mp.expm1, "log": mp.log, "log1p": mp.log1p,
    "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "asin": mp.asin, "acos": mp.acos, "atan": mp.atan,
    "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)), "erf": mp.erf, "erfc": mp.erfc, "pow": mp.power, "atan2": mp.atan2,
}  # fmt: skip
DOMAINS = {"log": (0, 90), "log1p": (-1, 90), "asin": (-1, 1), "acos": (-1, 1), "atanh": (-1, 1), "acosh": (1, 90)}
ULPS = 4
"""What OpenCL asks of most functions; ours are within 2."""


def applied(runtime: OpenCLRuntime, name: str, *args: np.ndarray) -> np.ndarray:
    """The function at each element, by a kernel of its own."""
    helper, text = functions.function(name)
    names = [*(f"a{n}" for n in range(len(args))), "out"]
    parameters = ", ".join(f"__global float *{a}, long {a}_" for a in names)
    value = f"{helper}({', '.join(f'{a}[i]' for a in names[:-1])})"
    source = f"{HEADER}{text}\n__kernel void k({parameters}) {{ long i = get_global_id(0); out[i] = {value}; }}"
    memory = [runtime.allocate(args[0].nbytes) for _ in range(len(args) + 1)]
    for m, x in zip(memory, args, strict=False):
        runtime.write(m, 0, x)
    runtime.launch(runtime.load(source, "k"), (args[0].size,), (1,), [(m, 0) for m in memory], ())
    result = np.empty_like(args[0])
    runtime.read(memory[-1], 0, result)
    return result


def ulps(got: np.ndarray, exact: list[mp.mpf]) -> float:
    errors = [
        abs(mp.mpf(g) - e) / mp.mpf(2) ** max(mp.frexp(abs(e))[1] - 24, -126) for g, e in zip(got.tolist(), exact)
    ]
    return float(max(errors))


@pytest.mark.parametrize("name", [n for n in EXACT if n not in BINARY])
def test_within_four_ulp(name: str, runtime: OpenCLRuntime) -> None:
    low, high = DOMAINS.get(name, (-30, 30))
    x = np.concatenate([RNG.uniform(low, high, 400), RNG.uniform(-1, 1, 200) * (max(low, -1) < 0)]).astype(np.float32)
    x = x[(x > low) & (x < high)]
    assert ulps(applied(runtime, name, x), [EXACT[name](mp.mpf(v)) for v in x.tolist()]) <= ULPS


@pytest.mark.parametrize("name", ["pow", "atan2"])
def test_of_two_arguments(name: str, runtime: OpenCLRuntime) -> None:
    x, y = RNG.uniform(0.1, 9, (2, 400)).astype(np.float32)
    exact = [EXACT[name](mp.mpf(a), mp.mpf(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert ulps(applied(runtime, name, x, y), exact) <= 4 * ULPS


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_many_turns(name: str, runtime: OpenCLRuntime) -> None:
    """The argument is reduced in float64, up to 2^51."""
    x = (2.0 ** RNG.uniform(-140, 50, 500) * RNG.choice([-1, 1], 500)).astype(np.float32)
    with mp.workprec(200):
        assert ulps(applied(runtime, name, x), [EXACT[name](mp.mpf(v)) for v in x.tolist()]) <= 2 * ULPS


def test_zeros_infinities_and_nan(runtime: OpenCLRuntime) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)
    with np.errstate(all="ignore"):
        for name in ("exp", "log", "sin", "tan", "tanh", "expm1", "atan", "sinh"):
            want = getattr(np, {"atan": "arctan"}.get(name, name))(x)
            got = applied(runtime, name, x)
            np.testing.assert_array_equal(got, want, name)
            np.testing.assert_array_equal(np.signbit(got[:2]), np.signbit(want[:2]), name)


def test_processors_get_our_own(runtime: OpenCLRuntime) -> None:
    """Calls of their own would keep loops from being vectorised."""
    _, text = functions.function("sin")
    ours, theirs = text.split("#else")
    assert "__builtin_fma" in ours and "return sin(x0);" in theirs
    if runtime.device.type & cl.device_type.CPU:
        x = np.array([1e30], np.float32)
        assert np.isnan(applied(runtime, "sin", x)), "beyond 2^51 there is no sine"


@pytest.mark.parametrize("name", TABLE)
def test_text_is_deterministic(name: str) -> None:
    """It is part of what compiled programs are found by."""
    assert functions.function(name) == functions.function.__wrapped__(name)
