"""The native thread pool: all pieces are done, by whoever; several callers at once; after fork."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from polyax_cpu import machine_code, native_pool, pool, processors
from polyax_cpu.llvm import Module
from polyax_cpu.records import FUNCTION_PARAMS, INTEGER, Record

PARALLEL = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 5)


def copy_in_pieces(size: int, piece: int) -> bool:
    """Whether a copy in pieces copies everything."""
    pool.ensure_started()
    source = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    target = np.zeros_like(source)
    pointers = (ctypes.c_void_p * 2)(source.ctypes.data, target.ctypes.data)
    parallel = PARALLEL(pool.symbols()["polyax_parallel"])
    parallel(pool.symbols()["polyax_copy"], ctypes.addressof(pointers), None, 0, size, piece, -(-size // piece), 1)
    return bool((source == target).all())


@pytest.mark.parametrize("size, piece", [(1, 1), (10, 3), (100_000, 7_001), (1 << 20, 64)])
def test_all_pieces_are_done(size: int, piece: int) -> None:
    assert copy_in_pieces(size, piece)


def test_many_callers_at_once() -> None:
    failures: list[int] = []

    def work(n: int) -> None:
        failures.extend(n for _ in range(200) if not copy_in_pieces(1000 + n, 100))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not failures and not any(t.is_alive() for t in threads)


def test_a_child_process_starts_its_own_threads() -> None:
    assert copy_in_pieces(1000, 10)
    child = os.fork()
    if child == 0:
        os._exit(0 if copy_in_pieces(100_000, 1000) else 1)
    assert os.waitpid(child, 0)[1] == 0


class Shared(ctypes.Structure):
    """What pieces know: the thread that asked, how long pieces of its own take and those of others (microseconds), and
    how many of those there were."""

    _fields_ = [("asker", INTEGER), ("own", INTEGER), ("others", INTEGER), ("count", INTEGER)]


@pytest.fixture(scope="module")
def patient() -> Any:
    """The code of another pool, for which pieces of less than 100 milliseconds are short, since threads of a busy
    machine come late."""
    names = ["polyax_start", "polyax_parallel", "switched", "asked"]
    module = Module(names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_pool, "SHORT", 100_000_000)
        native_pool.define_pool(module, processors.host().triple)
    b = module.function("void", "asked", FUNCTION_PARAMS)
    shared = Record(Shared, b.args[0])
    mine = b.call("i64", "pthread_self").compare("==", shared.asker)
    with b.when(~mine):
        b.emit("i64", f"atomicrmw add {shared.at('count')}, i64 1 monotonic")
    b.call("i32", "usleep", b.convert("trunc", b.select(mine, shared.own, shared.others), "i32"))
    b.ret()
    code = machine_code.library(module.text(), names, {}, level=0)
    ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("polyax_start"))(1)
    _forever.append(code)
    return code


@pytest.fixture
def helped(patient: Any) -> Callable[..., bool]:
    """Whether its workers take part in a job of so many pieces that take so long."""

    def run(pieces: int, own: int, others: int, brief: int = 1) -> bool:
        shared = Shared(threading.get_ident(), own, others, 0)
        parallel = PARALLEL(patient.address("polyax_parallel"))
        parallel(patient.address("asked"), ctypes.addressof(shared), None, 0, pieces, 1, pieces, brief)
        return shared.count > 0

    return run


_forever: list[Any] = []
"""The code of threads that nobody ends."""


def test_short_jobs_go_without_workers_behind_one_that_kept_waiting(helped: Callable[..., bool]) -> None:
    short, stuck, long = (40, 100, 100), (40, 100, 300_000), (4, 110_000, 110_000)
    assert any(helped(*short) for _ in range(100)), "they take part otherwise"
    alone = lambda: not any(helped(*short) for _ in range(50))
    assert any(helped(*stuck) and alone() and helped(*long) for _ in range(100)), "long ones are shared all the same"
    assert any(helped(*stuck) and alone() and helped(2, 110_000, 110_000, brief=0) for _ in range(100)), "of two pieces"


def test_a_thread_knows_whether_it_lost_its_core(patient: Any) -> None:
    lost = lambda: resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
    switched = ctypes.CFUNCTYPE(ctypes.c_int64)(patient.address("switched"))
    cores = os.sched_getaffinity(0)
    rival = f"import os; os.sched_setaffinity(0, [{min(cores)}])\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", rival]) as child:
        os.sched_setaffinity(0, {min(cores)})
        try:
            switched()
            before = lost()
            while lost() == before:
                pass
            assert switched() == 1
        finally:
            os.sched_setaffinity(0, cores)
            child.kill()
    for _ in range(1000):
        before = lost()
        switched()
        if (switched(), lost()) == (0, before):
            break
    else:
        pytest.fail("it is said to have lost its core again")
