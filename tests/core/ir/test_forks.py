"""A fork waits for work of other threads that must not be cut, and holds back what begins meanwhile."""

from __future__ import annotations

import os
import threading

from polyax.ir.forks import Uncut, uncut
from polyax.ir.lazy import lazy


def test_a_fork_waits_for_work_of_other_threads() -> None:
    events: list[str] = []
    uncut, begun, go_on = Uncut(), threading.Event(), threading.Event()

    def work() -> None:
        with uncut:
            begun.set()
            go_on.wait(60)
            events.append("worked")

    def fork() -> None:
        uncut.before_fork()
        events.append("forked")
        uncut.after_in_parent()

    threads = [threading.Thread(target=work), threading.Thread(target=fork)]
    threads[0].start()
    assert begun.wait(60)
    threads[1].start()
    while uncut._forking is None:
        pass
    late = threading.Thread(target=lambda: [uncut.__enter__(), events.append("late"), uncut.__exit__()])
    late.start()
    go_on.set()
    for t in (*threads, late):
        t.join(60)
    assert events == ["worked", "forked", "late"]


def test_work_within_work_and_a_fork_of_its_own_thread_do_not_wait() -> None:
    uncut = Uncut()
    with uncut, uncut:
        uncut.before_fork()
        uncut.after_in_child()
        assert uncut._within == {threading.get_ident(): 2}
    assert not uncut._within


def test_the_child_of_a_fork_within_work_leaves_it() -> None:
    with uncut:
        child = os.fork()
    if child == 0:
        os._exit(0 if not uncut._within else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_threads_compute_lazy_attributes_of_different_objects_at_once() -> None:
    meeting = threading.Barrier(2, timeout=60)

    class Slow:
        @lazy
        def value(self) -> int:
            return meeting.wait() * 0 + 5

    slow = [Slow(), Slow()]
    threads = [threading.Thread(target=lambda s=s: s.value) for s in slow]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert [s.__dict__["value"] for s in slow] == [5, 5]
