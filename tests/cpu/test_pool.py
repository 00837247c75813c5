"""The native thread pool: all pieces are done, by whoever; several callers at once; after fork."""

from __future__ import annotations

import ctypes
import os
import threading

import numpy as np
import pytest

from polyax_cpu import pool

PARALLEL = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 4)


def copy_in_pieces(size: int, piece: int) -> bool:
    """Whether a copy in pieces copies everything."""
    pool.ensure_started()
    source = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    target = np.zeros_like(source)
    pointers = (ctypes.c_void_p * 2)(source.ctypes.data, target.ctypes.data)
    parallel = PARALLEL(pool.symbols()["polyax_parallel"])
    parallel(pool.symbols()["polyax_copy"], ctypes.addressof(pointers), None, 0, size, piece, -(-size // piece))
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
