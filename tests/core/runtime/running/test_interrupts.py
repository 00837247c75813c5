"""Ctrl-C while programs on several devices run, and processes that end while some are queued."""

from __future__ import annotations

import os
import signal
import textwrap
import time

import pytest

from polyax.runtime.contract.queue import INLINE_COST, HostQueue, InterruptedProgram
from support.process import run

BEFORE = """
import os, signal, sys, threading, time
import numpy as np, polyax as px, polyax.numpy as jnp
from polyax import lax
from polyax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = px.make_mesh((2,), ("x",), (AxisType.Auto,))
x = px.device_put(jnp.ones(4), NamedSharding(mesh, P("x")))

def slow(seconds, text=""):
    def told(v):
        time.sleep(seconds)
        os.write(1, text.encode())
        return v

    @px.jit
    @px.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    def f(v):
        return lax.psum(px.pure_callback(told, px.ShapeDtypeStruct(v.shape, v.dtype), v), "x") + v
    return f

def interrupted_after(seconds):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
"""
PLATFORMS = ["cpu", "reference"]


def ended(program: str, device: str, within: float) -> tuple[int, str]:
    """The exit status and the output of a process, which has to end in time."""
    began = time.monotonic()
    done = run(BEFORE + textwrap.dedent(program), POLYAX_PLATFORMS=device, POLYAX_NUM_CPU_DEVICES="2")
    assert time.monotonic() - began < within, done.stdout + done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize("device", PLATFORMS)
def test_who_waits_can_be_interrupted(device: str) -> None:
    """The program goes on, and so does everything after it."""
    status, said = ended(
        """
        y = slow(1.5)(x)
        interrupted_after(0.3)
        began = time.monotonic()
        try:
            np.asarray(y)
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - began < 1.2)
        print(np.asarray(y), np.asarray(px.jit(lambda v: v + 1)(y)))
        """,
        device,
        30,
    )
    assert (status, said) == (0, "interrupted True\n[3. 3. 3. 3.] [4. 4. 4. 4.]\n")


@pytest.mark.parametrize("device", PLATFORMS)
def test_what_is_queued_is_done_before_the_process_ends(device: str) -> None:
    status, said = ended(
        """
        y = x
        for _ in range(5):
            y = slow(0.05, "called ")(y)
        sys.exit(3)
        """,
        device,
        30,
    )
    assert status == 3 and said.count("called") == 10


@pytest.mark.parametrize("device", PLATFORMS)
def test_what_is_queued_is_dropped_after_an_interrupt(device: str) -> None:
    status, said = ended(
        """
        f, y = slow(0.2, "called "), x
        for _ in range(200):
            y = f(y)
        interrupted_after(0.5)
        np.asarray(y)
        """,
        device,
        25,
    )
    assert status == -signal.SIGINT and 1 <= said.count("called") < 40


LOOPS = {
    "without end": (
        "lambda x: lax.while_loop(lambda c: c[1] >= 0, lambda c: (c[0] * 0.9, c[1] + 1 - 1), (x, jnp.int32(0)))"
    ),
    "with many turns": "lambda x: lax.fori_loop(0, 10**9, lambda i, c: jnp.sin(c) + i, x)",
    "in a loop": (
        "lambda x: lax.fori_loop(0, 10**9, lambda i, c: lax.fori_loop(0, 1000, lambda j, d: jnp.sin(d) + j, c), x)"
    ),
    "of callbacks": (
        "lambda x: lax.fori_loop(0, 10**8, lambda i, c: px.pure_callback(lambda v: v + 1, px.typeof(x), c), x)"
    ),
}


@pytest.mark.parametrize("device", ["cpu", "reference", "hello_c"])
@pytest.mark.parametrize("loop", LOOPS)
def test_loops_are_left(loop: str, device: str) -> None:
    """At once, in the thread that asks or in the queue's, so that the process ends as well."""
    status, said = ended(
        f"""
        interrupted_after(1)
        px.block_until_ready(px.jit({LOOPS[loop]})(jnp.ones(3)))
        """,
        device,
        40,
    )
    assert status == -signal.SIGINT and not said


@pytest.mark.parametrize("device", ["cpu"])
def test_who_leaves_a_loop_goes_on_afterwards(device: str) -> None:
    status, said = ended(
        f"""
        f = px.jit({LOOPS["without end"]})
        for _ in range(2):
            interrupted_after(0.5)
            try:
                f(jnp.ones(3))
            except KeyboardInterrupt:
                print("left")
        print(px.jit(lambda x: x + 1)(jnp.ones(3)))
        """,
        device,
        40,
    )
    assert (status, said) == (0, "left\nleft\n[2. 2. 2.]\n")


def test_a_program_that_was_interrupted_in_the_thread_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits is interrupted, as whoever presses the keys wants; the array says afterwards what became of it."""
    monkeypatch.setattr(HostQueue, "_serve", lambda self: None)  # all is left to those who wait
    queue = HostQueue("one")
    task = queue.run(lambda: os.kill(os.getpid(), signal.SIGINT) or time.sleep(5), (), INLINE_COST + 1)
    assert task is not None
    with pytest.raises(KeyboardInterrupt):
        task.wait()
    with pytest.raises(InterruptedProgram, match=r"was interrupted \(Ctrl-C\) before it was done; run it again"):
        task.wait()
    assert queue.run(lambda: None, (), 1) is None, "nothing is ahead of what comes next"
