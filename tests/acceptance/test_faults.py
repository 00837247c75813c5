"""What goes wrong around a program: processes that are killed, end or fork while they compile, disks that are full."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyax.numpy as jnp
from polyax.errors import JaxRuntimeError
from polyax.runtime.contract.cache import _decode
from support.process import output, run

COMPILES = """
    import sys, threading
    import numpy as np, polyax as jax, polyax.numpy as jnp

    def program(k, length=12):
        def f(x):
            for i in range(length):
                x = jnp.sin(x * (1 + k / 64)) + jnp.roll(x, i) * jnp.exp(-x.mean() ** 2)
            return x
        return jax.jit(f)

    x = np.linspace(0, 1, 50, dtype="float32")
"""
"""A program whose code is different for each ``k``."""


def program(text: str) -> str:
    return textwrap.dedent(COMPILES) + textwrap.dedent(text)


@pytest.mark.parametrize("platform_name", ["cpu"])
def test_children_compute_though_threads_were_compiling(platform_name: str, tmp_path: Path) -> None:
    children = """
        import os, signal, time, warnings
        warnings.simplefilter("ignore")
        program(9)(x)  # modules that are being imported are Python's: a child can't go on with them
        done, over = [], threading.Event()

        def compile_on(start):
            while not over.is_set():
                done.append(program(start + 2 * len(done))(x))

        threads = [threading.Thread(target=compile_on, args=(n,)) for n in range(2)]
        for t in threads:
            t.start()
        for n in range(4):
            time.sleep(0.1 * n)
            child = os.fork()
            if child == 0:
                signal.alarm(100)
                os._exit(not np.isfinite(np.asarray(program(10_000 + n)(x))).all())
            print(os.waitpid(child, 0)[1])
        over.set()
        for t in threads:
            t.join()
        print(len(done) > 0)
    """
    printed = output(program(children), POLYAX_PLATFORMS=platform_name, POLYAX_CACHE_DIR=str(tmp_path), timeout=500)
    assert printed.split() == ["0"] * 4 + ["True"]


@pytest.mark.parametrize("seconds", [0, 0.3, 0.6])
def test_a_process_ends_while_a_thread_compiles(seconds: float, tmp_path: Path) -> None:
    ending = f"""
        threading.Thread(target=lambda: program(0, 100)(x), daemon=True).start()
        threading.Event().wait({seconds})
        print("over")
    """
    done = run(program(ending), POLYAX_PLATFORMS="cpu", POLYAX_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "over\n"), done.stderr


def test_processes_killed_while_they_write_leave_nothing_wrong(tmp_path: Path) -> None:
    writing = program("for k in range(1000): print(program(k, 4)(x).sum(), flush=True)")
    environment = os.environ | {"POLYAX_PLATFORMS": "cpu", "POLYAX_CACHE_DIR": str(tmp_path)}
    for n in range(4):
        writer = subprocess.Popen([sys.executable, "-c", writing], env=environment, stdout=subprocess.PIPE)
        assert writer.stdout is not None
        assert all(writer.stdout.readline() for _ in range(4 * n + 1))
        time.sleep(0.02 * n)  # now it writes the next, or compiles it
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
    finished = [p for p in (tmp_path / "cpu").iterdir() if not p.name.startswith(".new-")]
    for path in finished:
        entry = path.read_bytes()
        assert _decode(_key(entry), entry) is not None, "an entry that has its name is whole"
    same = "print(np.asarray(program(3, 4)(x)).tobytes().hex())"
    kept = output(program(same), POLYAX_PLATFORMS="cpu", POLYAX_CACHE_DIR=str(tmp_path))
    made = output(program(same), POLYAX_PLATFORMS="cpu", POLYAX_COMPILATION_CACHE="0")
    assert kept == made


def _key(entry: bytes) -> str:
    return json.loads(entry.partition(b"\n")[0])["key"]


def test_a_disk_that_takes_no_more_costs_a_warning(tmp_path: Path) -> None:
    full = """
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        print(float(program(0)(x).sum()))
    """
    done = run(program(full), POLYAX_PLATFORMS="cpu", POLYAX_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0 and np.isfinite(float(done.stdout)), done.stderr
    assert "Compiled code could not be kept in" in done.stderr
    assert not list((tmp_path / "cpu").iterdir()), "nothing half written is left"


def test_entries_that_others_spoil_meanwhile_are_made_again(tmp_path: Path) -> None:
    spoiled = """
        import os, pathlib
        from polyax_cpu import machine_code, processors
        folder = pathlib.Path(os.environ["POLYAX_CACHE_DIR"]) / "cpu"
        first = np.asarray(program(0)(x))
        for n, path in enumerate(sorted(folder.iterdir())):
            path.write_bytes([b"", path.read_bytes()[:-7], os.urandom(500), path.read_bytes() + b"more"][n % 4])
    """
    again = """
        print(np.asarray(program(0)(x)).tobytes().hex())
        from polyax_cpu import machine_code
        print(machine_code._disk.stats().damaged > 0)
    """
    where: Any = {"POLYAX_PLATFORMS": "cpu", "POLYAX_CACHE_DIR": str(tmp_path)}
    before = output(program(spoiled + "\n        print(first.tobytes().hex())"), **where)
    after, damaged = output(program(again), **where).split()
    assert (after, damaged) == (before, "True")


def test_code_of_other_machines_is_not_run(tmp_path: Path) -> None:
    """A home that several machines share: what one compiled for its processor is nothing to another."""
    where: Any = {"POLYAX_PLATFORMS": "cpu", "POLYAX_CACHE_DIR": str(tmp_path)}
    found = """
        jax.block_until_ready(program(0)(x))
        from polyax_cpu import machine_code
        print(machine_code._disk.stats().hits > 0)
    """
    another = """
        from polyax_cpu import processors
        processors.Host.identity = property(lambda self: "a processor that has other instructions")
    """
    hits = [output(program(other + found), **where) for other in ("", "", another, another)]
    assert hits == ["False", "True", "False", "True"]


def test_memory_that_cannot_be_had_is_an_error_with_sizes() -> None:
    kept = jnp.ones((123, 1000))
    wanted = r"is out of memory: 4,[0-9,]+ bytes were asked for while [0-9,]+ are live.* float32\[123,1000\]"
    with pytest.raises(JaxRuntimeError, match=wanted) as caught:
        jnp.zeros((1 << 30, 1 << 20), jnp.float32).block_until_ready()
    assert isinstance(caught.value, MemoryError)
    np.testing.assert_array_equal(kept + 1, np.full((123, 1000), 2.0))
