"""Collectives through NCCL on emulated GPUs, each against NumPy; NCCL is threads that exchange host memory."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import cupy_backends.cuda.libs as libs
import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.ir.aval import ShapedArray
from polyax.ops import collective
from polyax.ops.parts import all_to_all_p
from polyax.ops.permuting import ppermute_p
from polyax.runtime.contract.processes import Alone
from polyax_cuda import nccl
from polyax_cuda.backend import CudaBackend
from polyax_cuda.check import H100
from polyax_kernels.gpu.collectives import lowerings
from polyax_kernels.gpu.collectives.communication import Connections, LibraryGroup
from support import nccl_stand_in
from support.emulator import EmulatedRuntime
from support.nccl_stand_in import NcclCommunicator
from support.offers import offered

COUNT = 4
X = np.random.default_rng(0).standard_normal((COUNT, 4, 8)).astype(np.float32)


class ConnectedRuntime(EmulatedRuntime):
    """What NCCL asks of a GPU beside its memory."""

    stream = SimpleNamespace(ptr=0)

    def __init__(self, number: int) -> None:
        super().__init__(H100)
        self.number = number

    def current(self) -> Any:
        return nullcontext()


class ConnectedBackend(CudaBackend):
    """With NCCL, and no other library."""

    def lowerings(self) -> Mapping[Any, Any]:
        return offered(lowerings.lowerings(nccl.NCCL))


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[CudaBackend]:
    monkeypatch.setitem(libs.__dict__, "nccl", nccl_stand_in)
    monkeypatch.setattr(nccl.toolkits, "why_missing", lambda *_: None)
    nccl.why_missing.cache_clear()
    NcclCommunicator.made, NcclCommunicator.calls = [], []
    yield ConnectedBackend("cuda", [ConnectedRuntime(n) for n in range(COUNT)])
    nccl.why_missing.cache_clear()


def mapped(gpus: CudaBackend, fun: Callable[..., Any], *args: Any) -> np.ndarray:
    return np.asarray(polyax.pmap(fun, axis_name="i", devices=gpus.devices())(*args))


def stacked(parts: Any) -> np.ndarray:
    return np.stack([parts] * COUNT)


PAIRS = [[0, 2], [1, 3]]
SUM = X.sum(0)
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], Any], str]] = {
    "psum": (lambda x: lax.psum(x, "i"), lambda: stacked(SUM), "allReduce"),
    "psum in groups": (
        lambda x: lax.psum(x, "i", axis_index_groups=PAIRS), lambda: X[[0, 1, 0, 1]] + X[[2, 3, 2, 3]], "allReduce",
    ),
    "all_gather": (lambda x: lax.all_gather(x, "i"), lambda: stacked(X), "allGather"),
    "all_gather along 1": (lambda x: lax.all_gather(x, "i", axis=1), lambda: stacked(np.stack(X, 1)), "allGather"),
    "all_gather, tiled along 1": (
        lambda x: lax.all_gather(x, "i", axis=1, tiled=True), lambda: stacked(np.concatenate(X, 1)), "allGather",
    ),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i"), lambda: SUM, "reduceScatter"),
    "psum_scatter, tiled along 1": (
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
        lambda: np.stack(np.split(SUM, COUNT, 1)), "reduceScatter",
    ),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 0), lambda: X.swapaxes(0, 1), "send"),
    "all_to_all, 0 to 1": (lambda x: lax.all_to_all(x, "i", 0, 1), lambda: X.transpose(1, 2, 0), "send"),
    "all_to_all, tiled, 1 to 0": (
        lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
        lambda: np.stack([np.concatenate([np.split(x, COUNT, 1)[n] for x in X]) for n in range(COUNT)]), "send",
    ),
    "ppermute": (
        lambda x: lax.ppermute(x, "i", [(0, 1), (1, 3), (2, 2)]),
        lambda: np.stack([0 * X[0], X[0], X[2], X[1]]), "send",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(gpus: CudaBackend, name: str) -> None:
    fun, oracle, call = PROGRAMS[name]
    np.testing.assert_allclose(mapped(gpus, fun, X), oracle(), rtol=1e-5, atol=1e-5)
    assert call in NcclCommunicator.calls


@pytest.mark.parametrize("dtype", ["int32", "float16", "bfloat16"])
def test_sums_of_other_dtypes(gpus: CudaBackend, dtype: str) -> None:
    x = (4 * X).round().astype(jnp.dtype(dtype))
    got = mapped(gpus, lambda x: lax.psum(x, "i"), x)
    np.testing.assert_array_equal(got.astype(float), stacked((4 * X).round().sum(0)))
    assert "allReduce" in NcclCommunicator.calls


def test_extrema_of_floats_keep_nan(gpus: CudaBackend) -> None:
    x = np.where(X > 1, np.float32(np.nan), X)
    np.testing.assert_array_equal(mapped(gpus, lambda x: lax.pmax(x, "i"), x), stacked(x.max(0)))
    assert NcclCommunicator.calls == []
    whole = (9 * X).astype(np.int32)
    np.testing.assert_array_equal(mapped(gpus, lambda x: lax.pmin(x, "i"), whole), stacked(whole.min(0)))
    assert "allReduce" in NcclCommunicator.calls


def test_collectives_between_kernels_and_host_rules(gpus: CudaBackend) -> None:
    fun = lambda x: lax.psum(jnp.sin(x), "i") * lax.axis_index("i") + lax.pmax(x, "i")
    want = np.sin(X).sum(0) * np.arange(COUNT)[:, None, None] + X.max(0)
    np.testing.assert_allclose(mapped(gpus, fun, X), want, rtol=1e-4, atol=1e-4)


def test_gradients_go_through_nccl_as_well(gpus: CudaBackend) -> None:
    fun = lambda x: polyax.grad(lambda x: (lax.all_gather(x, "i") ** 2).sum())(x)
    np.testing.assert_allclose(mapped(gpus, fun, X), 2 * COUNT * X, rtol=1e-5)
    assert "reduceScatter" in NcclCommunicator.calls


def test_connections_are_made_once(gpus: CudaBackend) -> None:
    for _ in range(3):
        mapped(gpus, lambda x: lax.psum(x, "i"), X)
    mapped(gpus, lambda x: lax.pmean(x * 2, "i"), X)
    assert NcclCommunicator.made == [tuple(range(COUNT))]
    mapped(gpus, lambda x: lax.psum(x, "i", axis_index_groups=PAIRS), X)
    assert NcclCommunicator.made[1:] == [(0, 2), (1, 3)]


def test_one_gpu_and_no_nccl_meet_on_the_host(gpus: CudaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    axes = (("i", 2),)
    assert isinstance(gpus.collectives(gpus.devices()[:2], axes), LibraryGroup)
    assert not isinstance(gpus.collectives(gpus.devices()[:1], (("i", 1),)), LibraryGroup)
    monkeypatch.setattr(nccl.toolkits, "why_missing", lambda *_: "NCCL can't be loaded")
    nccl.why_missing.cache_clear()
    np.testing.assert_allclose(mapped(gpus, lambda x: lax.psum(x, "i"), X), stacked(SUM), rtol=1e-5, atol=1e-5)
    assert NcclCommunicator.calls == []


def test_a_member_that_fails_leaves_none_waiting(gpus: CudaBackend) -> None:
    def fail(x: np.ndarray) -> np.ndarray:
        if x[0, 0] == X[2, 0, 0]:
            raise ValueError("the third one")
        return x

    def fun(x: Any) -> Any:
        return lax.psum(polyax.pure_callback(fail, polyax.ShapeDtypeStruct(x.shape, x.dtype), x), "i")

    with pytest.raises(Exception, match="the third one"):
        mapped(gpus, fun, X)
    assert NcclCommunicator.calls == []
    np.testing.assert_allclose(mapped(gpus, lambda x: lax.psum(x, "i"), X), stacked(SUM), rtol=1e-5, atol=1e-5)


def test_reasons() -> None:
    table: Any = lowerings.lowerings(nccl.NCCL)
    wide, narrow, empty = (ShapedArray(s, np.dtype(d)) for s, d in (((3,), "float32"), ((3,), "int16"), ((0,), "int8")))
    assert "no sum of int16" in table[collective.psum_p].why_not([wide, narrow], {})
    assert "no maximum of float32" in table[collective.pmax_p].why_not([wide], {})
    assert "empty" in table[ppermute_p].why_not([empty], {})
    assert "not split_axis=1" in table[all_to_all_p].why_not([wide], {"split_axis": 1, "concat_axis": 0})


def test_cupy_has_what_is_used() -> None:
    real = pytest.importorskip("cupy_backends.cuda.libs.nccl", reason="needs NCCL", exc_type=ImportError)
    for name in ("allReduce", "allGather", "reduceScatter", "send", "recv"):
        ours = list(inspect.signature(getattr(NcclCommunicator, name)).parameters)
        text = getattr(real.NcclCommunicator, name).__doc__.split("(")[1].split(")")[0]
        assert [p.split()[-1] for p in text.split(", ")] == ours
    known = {n: getattr(real, f"NCCL_{n.upper()}") for n in nccl.TYPES}
    assert known == nccl.TYPES
    assert nccl.OPERATIONS == {"psum": real.NCCL_SUM, "pmax": real.NCCL_MAX, "pmin": real.NCCL_MIN}
    assert issubclass(real.NcclError, RuntimeError)
    assert callable(real.groupStart)
    assert callable(real.groupEnd)


# --- several processes, each of which has some of the GPUs


class _Side(Alone):
    """One of two processes, which are threads here: messages through a table, memory not at all."""

    ranks = (0, 1)

    def __init__(self, rank: int, table: list[bytes], barrier: threading.Barrier) -> None:
        self.rank, self.table, self.barrier = rank, table, barrier

    def gather(self, data: bytes, what: str) -> list[bytes]:
        self.table[self.rank] = data
        self.barrier.wait()
        told = list(self.table)
        self.barrier.wait()
        return told


@pytest.mark.parametrize(("groups", "expected"), [(None, [6, 6, 6, 6]), (((0, 2), (1, 3)), [2, 4, 2, 4])])
def test_members_in_two_processes(gpus: CudaBackend, groups: Any, expected: list[float]) -> None:
    """A name, made where the first member is, connects them; GPUs exchange memory, processes none."""
    barrier, table, homes = threading.Barrier(2, timeout=20), [b"", b""], [0, 0, 1, 1]
    memory = [(np.full(3, n, np.float32), np.zeros(3, np.float32)) for n in range(COUNT)]

    def group(side: int) -> LibraryGroup:
        own = {n: gpus.runtimes[n] for n in range(COUNT) if homes[n] == side}
        return LibraryGroup((("i", COUNT),), Connections(nccl.NCCL, own), homes, _Side(side, table, barrier))

    sides = [group(0), group(1)]

    def member(n: int) -> None:
        for _ in range(2):  # the second time they are connected
            end = sides[homes[n]].communicator(n, ("i",), groups)
            source, target = memory[n]
            end.all_reduce(source.ctypes.data, target.ctypes.data, 3, "float32", "psum")

    with ThreadPoolExecutor(COUNT) as pool:
        list(pool.map(member, range(COUNT)))
    assert [target[0] for _, target in memory] == expected
    assert NcclCommunicator.made == [] and NcclCommunicator.calls == ["allReduce"] * 2 * COUNT
