"""The queue of a host device: in which thread work runs, in which order, and with whose settings."""

import sys
import threading
import time

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.ir.config import config
from polyax.runtime.contract.queue import HELP_COST, INLINE_COST, HostQueue, serving
from support import process


def test_work_sees_the_settings_of_who_asks():
    queue, seen = HostQueue("test"), []
    for x64 in (True, False):
        with polyax.enable_x64(x64):
            queue.run(lambda: seen.append(config.enable_x64), [], INLINE_COST + 1)
    queue.synchronize()
    assert seen == [True, False]


@pytest.fixture
def idle_queue():
    """A queue whose thread sleeps, and wakes up no earlier than this thread waits."""
    queue = HostQueue("test")
    queue.run(lambda: None, [], INLINE_COST + 1)
    while queue.tasks:
        time.sleep(0.001)
    before = sys.getswitchinterval()
    sys.setswitchinterval(10)
    yield queue
    sys.setswitchinterval(before)


def submitted(queue, work, cost=HELP_COST):
    task = queue.run(work, [], cost)
    assert task is not None
    return task


def test_who_waits_runs_what_has_not_begun(idle_queue):
    threads = []
    submitted(idle_queue, lambda: threads.append((threading.current_thread(), serving()))).wait()
    assert threads == [(threading.current_thread(), True)]
    assert not serving()


def test_who_waits_for_long_work_can_be_interrupted(idle_queue):
    threads = []
    submitted(idle_queue, lambda: threads.append(threading.current_thread()), HELP_COST + 1).wait()
    assert threads == [idle_queue._thread]


def test_who_waits_runs_nothing_that_others_are_ahead_of(idle_queue):
    threads = []
    for _ in range(3):
        last = submitted(idle_queue, lambda: threads.append(threading.current_thread()))
    last.wait()
    assert threads == [idle_queue._thread] * 3


def test_nothing_begins_while_who_waits_runs_something(idle_queue):
    order, later = [], []

    def slow():
        order.append("begins")
        asks = threading.Thread(
            target=lambda: later.append(submitted(idle_queue, lambda: order.append("next"), HELP_COST + 1))
        )
        asks.start()
        asks.join()
        time.sleep(0.05)
        order.append("ends")

    submitted(idle_queue, slow).wait()
    later[0].wait()
    assert order == ["begins", "ends", "next"]


def test_errors_of_what_who_waits_runs_stay_with_it(idle_queue):
    def fail():
        raise ArithmeticError("inside")

    task = submitted(idle_queue, fail)
    for _ in range(2):
        with pytest.raises(ArithmeticError, match="inside"):
            task.wait()
    submitted(idle_queue, lambda: None).wait()
    idle_queue.synchronize()


def test_callbacks_of_what_a_trace_waits_for_are_not_traced(idle_queue):
    x, results = np.arange(3.0, dtype=np.float32), []

    def traced(y):
        submitted(idle_queue, lambda: results.append(np.asarray(jnp.sin(x)))).wait()
        return y * 2

    polyax.make_jaxpr(traced)(1.0)
    np.testing.assert_allclose(results[0], np.sin(x), rtol=1e-6)


def test_what_runs_when_the_interpreter_ends_is_finished() -> None:
    """A thread that is stopped within native code would abort the process."""
    done = process.run("""
        import time
        from polyax.runtime.contract.queue import HostQueue
        HostQueue("left").run(lambda: (time.sleep(0.3), print("finished")), (), 10**12)
    """)
    assert (done.returncode, done.stdout.strip()) == (0, "finished"), done.stderr


def test_a_child_does_not_wait_for_a_lock_that_a_thread_held() -> None:
    program = """
        import os, signal, threading
        from polyax.runtime.contract.queue import HostQueue
        queue, held, over = HostQueue("test"), threading.Event(), threading.Event()

        def hold():
            with queue._wake:
                held.set()
                over.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            task = queue.run(lambda: None, [], 10**9)
            task.wait()
            os._exit(0)
        print(os.waitpid(child, 0)[1])
        over.set()
        thread.join()
    """
    assert process.output(program) == "0"
