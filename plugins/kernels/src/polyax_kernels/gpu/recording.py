"""Steps that are recorded once and then started together, on devices that can do so: CUDA calls it a graph.

A recording holds addresses. A loop that runs a program again and again gets the same few blocks of memory, so
recordings are kept by the addresses that they were made for. The first run on any is an ordinary one.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Generator, Iterator, Sequence
from itertools import groupby
from typing import Any

from polyax_kernels.gpu.runtime import Runtime
from polyax_kernels.plan.plan import Step
from polyax_kernels.run.executable import Runner

FEWEST = 4
"""Starting a recording of fewer launches saves less than finding it costs."""
LONGEST = 10_000
"""Launches of one recording at most: each takes memory of the device, and a microsecond when it is made."""
MOST = 8
"""Recordings kept for the same steps."""
_within = threading.local()


def joined(runtime: Runtime, runners: Sequence[Runner]) -> Iterator[Runner]:
    """The same work in fewer runners. Between library calls that may wait or allocate, and loops whose ends only the
    device knows, all become one. ``runner.launches`` says how many launches one is; others have none."""
    for can, some in groupby(runners, lambda r: 0 < launches(r) <= LONGEST):
        together = list(some)
        if can and FEWEST <= sum(map(launches, together)) <= LONGEST:
            yield Recorded(runtime, together)
        else:
            yield from together


def launches(runner: Runner) -> int:
    """How many launches and copies ``runner`` is, if it is nothing else; else 0."""
    return getattr(runner, "launches", 0)


class Recorded:
    """Some steps; the second time that they run on the same memory, they are recorded."""

    def __init__(self, runtime: Runtime, steps: Sequence[Runner]) -> None:
        self.runtime = runtime
        self.steps = steps
        self.launches = sum(map(launches, steps))
        self._known: OrderedDict[tuple[int, ...], Any] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, bases: Sequence[Any]) -> None:
        if getattr(_within, "recording", False):  # of a loop of which this is the body
            self.run(bases)
            return
        key = tuple(0 if b is None else self.runtime.address(b.memory) + b.offset for b in bases)
        seen, recording = key in self._known, self._known.get(key)
        with _alone():
            if seen and recording is None:
                recording = self.runtime.record(lambda: self.run(bases))
            self._remember(key, recording)
            if recording is None:
                self.run(bases)
            else:
                self.runtime.replay(recording)

    def run(self, bases: Sequence[Any]) -> None:
        for step in self.steps:
            step(bases)

    def apart(self) -> list[tuple[Step, Runner]]:
        """Each step, and what runs it alone."""
        return [(step.step, step) for step in self.steps]  # pyright: ignore[reportFunctionMemberAccess]

    def _remember(self, key: tuple[int, ...], recording: Any) -> None:
        with self._lock:
            self._known[key] = recording
            self._known.move_to_end(key)
            if len(self._known) > MOST:
                self._known.popitem(last=False)


@contextlib.contextmanager
def _alone() -> Generator[None]:
    """What this thread runs inside is recorded as a whole, if at all."""
    _within.recording = True
    try:
        yield
    finally:
        _within.recording = False
