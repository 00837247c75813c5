"""CUDA C that runs: whole programs on an emulated GPU, against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax_cuda.backend import CudaBackend
from polyax_kernels.gpu import recording
from polyax_kernels.gpu.memory import SCALARS
from polyax_kernels.gpu.scatter import FEW

X = np.random.default_rng(0).standard_normal((24, 70)).astype(np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "elementwise": (lambda x: jnp.tanh(x) * jnp.exp(-x * x), lambda x: np.tanh(x) * np.exp(-x * x)),
    "rows": (lambda x: polyax.nn.softmax(x, -1), softmax),
    "columns": (lambda x: x.sum(0), lambda x: x.sum(0)),
    "all": (lambda x: jnp.sqrt((x * x).mean()), lambda x: np.sqrt((x * x).mean())),
    "argmax": (lambda x: jnp.argmax(x, 1), lambda x: x.argmax(1)),
    "product": (lambda x: x @ x.T, lambda x: x @ x.T),
    "gradient": (
        polyax.grad(lambda x: jnp.tanh(x @ x.T).sum()),
        lambda x: (g := 1 - np.tanh(x @ x.T) ** 2) @ x + g.T @ x,
    ),
    "scatter": (lambda x: x.at[:, jnp.array([1, 1, 3])].add(2.0), lambda x: x + 2 * np.eye(70)[[1, 1, 3]].sum(0)),
    "narrow": (lambda x: x.astype(jnp.bfloat16).astype(jnp.float16) * 2, lambda x: 2 * x),
    "integers": (lambda x: (x * 100).astype(jnp.int8) // 7, lambda x: np.clip(np.trunc(x * 100), -128, 127) // 7),
    "log-softmax": (lambda x: polyax.nn.log_softmax(x, -1), lambda x: np.log(softmax(x))),
    "rows by their norms": (
        lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True),
        lambda x: x / np.linalg.norm(x, axis=1)[:, None],
    ),
    "gradient of minima": (
        polyax.grad(lambda x: (x.min(1) ** 2).sum()),
        lambda x: np.where(x == x.min(1, keepdims=True), 2 * x.min(1, keepdims=True), 0),
    ),
    "cumulative": (lambda x: jnp.cumsum(x, 1), lambda x: np.cumsum(x, 1)),
}


Geometry = tuple[tuple[int, ...], tuple[int, ...]]


@pytest.fixture
def launches(gpu: CudaBackend, monkeypatch: pytest.MonkeyPatch) -> list[Geometry]:
    """The groups, and the threads of each, of every launch from now on."""
    runtime, seen = gpu.runtimes[0], list[Geometry]()
    launch = runtime.launch
    watch = lambda function, groups, threads, *rest: (
        seen.append((groups, threads)),
        launch(function, groups, threads, *rest),
    )
    monkeypatch.setattr(runtime, "launch", watch)
    return seen


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("number", [0, 1])
def test_programs(emulated: CudaBackend, name: str, number: int) -> None:
    fun, oracle = PROGRAMS[name]
    with polyax.default_device(emulated.devices()[number]):
        got = np.asarray(polyax.jit(fun)(X))
    tolerance = 2e-2 if name == "narrow" else 1e-4
    np.testing.assert_allclose(got.astype(float), oracle(X.astype(float)), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["log-softmax", "rows by their norms", "gradient of minima"])
def test_rows_are_folded_once(gpu: CudaBackend, launches: list[Geometry], name: str) -> None:
    """By one group for each row, however many points of it need the fold."""
    polyax.jit(PROGRAMS[name][0])(X).block_until_ready()
    assert ((24,), (128,)) in launches
    assert sum(groups[0] for groups, _ in launches) <= 2 * 24


def test_few_rows_get_more_threads(gpu: CudaBackend, launches: list[Geometry]) -> None:
    """So that they fill the device; not more than there are elements."""
    rows = polyax.jit(lambda x: x / x.max(1, keepdims=True))
    for shape in ((2, 5000), (2, 600)):
        rows(jnp.ones(shape)).block_until_ready()
    assert [threads for groups, threads in launches if groups == (2,)] == [(1024,), (512,)]


def test_reports_show_kernels_that_groups_share(gpu: CudaBackend, capsys: pytest.CaptureFixture[str]) -> None:
    polyax.explain(polyax.jit(lambda x: polyax.nn.softmax(x.astype("bfloat16"), -1)))(X)
    assert "exp" in capsys.readouterr().out


def test_random_bits_are_the_reference_backends(gpu: CudaBackend) -> None:
    def draw() -> np.ndarray:
        return np.asarray(polyax.random.bits(polyax.random.PRNGKey(7), (33,)))

    here = draw()
    with polyax.default_device("reference"):
        np.testing.assert_array_equal(here, draw())


def test_arrays_move_between_gpus(emulated: CudaBackend) -> None:
    first, second = emulated.devices()
    moved = polyax.device_put(polyax.device_put(X, first), second)
    assert moved.device is second
    np.testing.assert_array_equal(np.asarray(moved + 1), X + 1)


def test_steps_are_recorded_when_they_run_again_on_the_same_memory(
    gpu: CudaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "FEWEST", 1)
    step = polyax.jit(lambda x: jnp.sin(x) + x[:1])
    runtime: Any = gpu.runtimes[0]
    runtime.replayed = 0
    x = jnp.asarray(X)
    want = np.asarray(step(x))
    for n in range(4):
        np.testing.assert_array_equal(np.asarray(step(x)), want)
        assert runtime.replayed == n + 1
    other = np.asarray(step(x + 1))  # other memory: an ordinary run
    assert runtime.replayed == 4
    np.testing.assert_allclose(other, np.sin(X + 1) + X[:1] + 1, rtol=1e-5, atol=1e-5)


def turns(runtime: Any, fun: Callable[[Any], Any], x: Any) -> int:
    """How many recordings the third call starts, which gives what the first gave."""
    compiled = polyax.jit(fun)
    want = np.asarray(compiled(x))
    np.testing.assert_array_equal(compiled(x), want)
    runtime.replayed = 0
    np.testing.assert_array_equal(compiled(x), want)
    return runtime.replayed


def test_a_loop_of_known_length_is_recorded_whole(gpu: CudaBackend) -> None:
    runtime, x = gpu.runtimes[0], jnp.arange(8.0)
    step = lambda c, row: (jnp.sin(c) + row, c.sum())
    assert turns(runtime, lambda x: lax.scan(step, x, jnp.ones((20, 8)))[1], x) == 1
    nested = lambda x: lax.fori_loop(0, 5, lambda _, c: lax.fori_loop(0, 4, lambda _, d: jnp.flip(jnp.cos(d)), c), x)
    assert turns(runtime, nested, x) == 1


def test_a_long_loop_is_not_recorded_whole(gpu: CudaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "LONGEST", 10)
    flips = lambda x: lax.fori_loop(0, 20, lambda _, c: jnp.flip(c) + c.sum(), x)
    assert turns(gpu.runtimes[0], flips, jnp.arange(8.0)) == 0


def test_a_loop_that_ends_by_its_values_is_walked(gpu: CudaBackend) -> None:
    halve = lambda x: lax.while_loop(lambda c: c.sum() > 1, lambda c: jnp.flip(c) / 2, x)
    assert turns(gpu.runtimes[0], halve, jnp.arange(8.0)) == 0


MEETING = np.array([3, 1, 3, 9, -1, 3, 1, 3], np.int32)
VALUES = np.arange(1, 9)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int16", "int32", "int64", "uint64"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "min", "max", "set"])
def test_updates_that_meet(gpu: CudaBackend, launches: list[Geometry], name: str, dtype: str) -> None:
    """As a loop over them, by the threads of one launch."""
    with polyax.enable_x64(True):
        start, values = np.full(8, 100).astype(dtype), VALUES.astype(dtype)
        got = polyax.jit(lambda x, u: getattr(x.at[MEETING], name)(u, mode="drop"))(start, values)
    combine: Any = {"set": lambda _, new: new, "min": min, "max": max}.get(name) or getattr(np, name)
    want = np.full(8, 100)
    for at, value in zip(MEETING, VALUES, strict=True):
        if at < 8:  # -1 is the last one
            want[at] = combine(want[at], value)
    assert got.dtype == dtype
    np.testing.assert_array_equal(np.asarray(got).astype(int), want)
    assert launches
    assert min(math.prod(threads) for _, threads in launches) > 1


def test_updates_that_meet_keep_nan_and_signs_of_zero(gpu: CudaBackend) -> None:
    x, at = jnp.array([0.0, 1.0, 0.0]), np.array([0, 0, 1, 1, 2])
    got = np.asarray(x.at[at].min(np.array([-0.0, 0.0, np.nan, 0.5, 3.0], np.float32)))
    np.testing.assert_array_equal(got, [0.0, np.nan, 0.0])
    assert np.signbit(got[0])


def test_few_updates_of_much_are_one_threads_work(gpu: CudaBackend, capsys: pytest.CaptureFixture[str]) -> None:
    few = polyax.jit(lambda x: x.at[np.array([1, 1])].set(np.array([1, 2], np.float32)))
    polyax.explain(few)(jnp.zeros(4 * FEW))
    assert "1 kernel, 1 copy" in capsys.readouterr().out
    assert few(jnp.zeros(4 * FEW))[1] == 2


def test_eager_operations_send_each_constant_once(gpu: CudaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, written = gpu.runtimes[0], list[int]()
    write = runtime.write
    monkeypatch.setattr(
        runtime, "write", lambda target, at, host: (written.append(host.nbytes), write(target, at, host))
    )
    x, number = jnp.arange(3.0), 1.2345
    for _ in range(3):
        x = x * number
    assert written.count(4) == 1
    x = polyax.jit(lambda y: y + 1, donate_argnums=0)(polyax.device_put(np.float32(number)))
    np.testing.assert_allclose(np.asarray(jnp.ones(2) * number), [number, number], rtol=1e-6)


def test_numbers_kept_on_the_device_are_few(gpu: CudaBackend) -> None:
    x = jnp.arange(3.0)
    for n in range(2 * SCALARS):
        x * float(n)
    assert len(gpu.stores[0]._scalars) <= SCALARS
    np.testing.assert_array_equal(x * 7.0, [0, 7, 14])


@pytest.mark.parametrize("n", [70_000, 100_003])
def test_the_place_of_an_extremum_is_sought_by_many_groups(gpu: CudaBackend, launches: list[Geometry], n: int) -> None:
    """In chunks, and in what they leave; of equal ones the first, and NaN before all."""
    x = np.random.default_rng(0).integers(0, 100, n).astype(np.float32)
    assert int(jnp.argmax(x)) == x.argmax()
    assert int(jnp.argmin(x)) == x.argmin()
    assert max(groups[0] for groups, _ in launches) > 8
    x[[n - 1, n // 2]] = np.nan
    assert int(jnp.argmax(x)) == n // 2
