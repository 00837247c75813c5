"""How programs on several devices are launched and meet."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import polyax
from polyax.runtime.contract.collectives import Group, entered, member
from polyax.runtime.contract.effects import barrier, started
from polyax.runtime.contract.queue import HostQueue, Task
from support.process import output

AXES = (("i", 2), ("j", 3))


def test_peers_are_ordered_by_the_names():
    group = Group(AXES)
    assert group.peers(4, ("j",)) == ([3, 4, 5], 1)
    assert group.peers(4, ("i", "j")) == ([0, 1, 2, 3, 4, 5], 4)
    assert group.peers(4, ("j", "i")) == ([0, 3, 1, 4, 2, 5], 3)
    assert group.peers(4, ("j",), ((0,), (2, 1))) == ([5, 4], 1)
    assert group.coordinates(5) == {"i": 1, "j": 2}


def together(group, work):
    """What ``work(rank)`` returns, or the error that it raises, for all members at once."""

    def run(rank):
        try:
            with entered(group, rank):
                return work(rank)
        except Exception as e:
            return e

    with ThreadPoolExecutor(group.size) as pool:
        return list(pool.map(run, range(group.size)))


def test_members_meet_as_often_as_they_like():
    group = Group(AXES)

    def work(rank):
        assert member() == (group, rank)
        return [group.meet(rank, (turn, rank)) for turn in range(50)]

    for got in together(group, work):
        assert got == [[(turn, rank) for rank in range(6)] for turn in range(50)]
    with pytest.raises(RuntimeError, match="outside of any group"):
        member()


def test_a_member_that_fails_ends_the_meeting():
    def work(rank):
        if rank == 2:
            raise LookupError("rank 2")
        group.meet(rank, None)

    group = Group(AXES)
    assert [str(e) for e in together(group, work)] == ["rank 2"] * 6


def test_members_meet_those_along_the_axes_alone():
    """The others may be in other turns of a loop, or not come at all."""
    group = Group(AXES)

    def work(rank):
        peers, _ = group.peers(rank, ("j",))
        return [group.meet(rank, rank, peers)[peers[0] : peers[-1] + 1] for _ in range(2 + 3 * (rank > 2))]

    got = together(group, work)
    assert got[:3] == [[[0, 1, 2]] * 2] * 3 and got[3:] == [[[3, 4, 5]] * 5] * 3


def test_nobody_waits_for_a_member_that_has_ended():
    group = Group(AXES)
    group.what = "jit(f)"
    for error in together(group, lambda rank: rank == 4 or group.meet(rank, None, None, "psum"))[:4]:
        assert isinstance(error, RuntimeError)
        assert re.search(r"jit\(f\): device \d waits in psum for device 4, which has ended", str(error))


def test_what_a_queue_runs_may_use_other_queues():
    """They may be waiting for it."""
    one, other = HostQueue("one"), HostQueue("other")
    release, result = threading.Event(), []
    blocked = other.run(lambda: release.wait(10) and None, (), 10**9)
    task = one.run(lambda: result.append(other.run(lambda: result.append("inner"), (), 10**9)), (), 10**9)
    task.wait()
    release.set()
    blocked.wait()
    assert result == ["inner", None]


def failed(error):
    task = Task(lambda: None)
    task.error, task.done = error, True
    task.finished.set()
    return task


def test_the_barrier_tells_each_error_once():
    fine, bad, known = failed(None), failed(ArithmeticError("bad")), failed(LookupError("known"))
    with pytest.raises(LookupError):
        known.wait()
    on = polyax.devices("reference")[0]
    started("f", [(fine, on)])
    started("g", [(known, on), (known, on)])
    started("h", [(fine, on), (bad, on)])
    with pytest.raises(ArithmeticError) as caught:
        barrier()
    assert caught.value.__notes__[-1] == (
        "raised in h, which had been started before; nobody has asked for a result of it since"
    )
    barrier()


def test_collectives_come_from_the_backend():
    assert (
        output(
            """
        import numpy as np, polyax
        from polyax import lax
        from polyax.runtime.contract.collectives import Group

        class Counting(Group):
            meetings = 0

            def meet(self, rank, *args):
                Counting.meetings += rank == 0
                return super().meet(rank, *args)

        backend = polyax.devices("reference")[0].backend
        backend.collectives = lambda devices, axes: Counting(axes)
        with polyax.default_device("reference"):
            y = np.asarray(polyax.pmap(lambda x: lax.psum(lax.pmax(x, "i"), "i"), "i")(np.arange(2)))
            print(y, Counting.meetings)
        """,
            POLYAX_NUM_CPU_DEVICES="2",
        )
        == "[2 2] 2"
    )


def test_a_program_is_prepared_once():
    assert (
        output(
            """
        import numpy as np, polyax
        from polyax.runtime.running.spmd import Team

        made, original = [], Team.__init__
        Team.__init__ = lambda self, *args: made.append(1) or original(self, *args)
        f = polyax.pmap(lambda x: x + 1)
        x = np.zeros((2, 3), np.float32)
        f(f(f(x)))
        f(np.zeros((2, 4), np.float32))
        print(len(made))
        """,
            POLYAX_NUM_CPU_DEVICES="2",
            POLYAX_DEVICE="cpu",
        )
        == "2"
    )
