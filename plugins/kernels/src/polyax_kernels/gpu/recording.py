"""Steps that are recorded once and then started together, on devices that can do so: CUDA calls it a graph.

A recording holds addresses. A loop that runs a program again and again gets the same few blocks of memory, so
recordings are kept by the addresses that they were made for. The first run on any is an ordinary one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from polyax_kernels.gpu.runtime import Runtime
from polyax_kernels.plan.plan import CallStep, ControlStep, Step
from polyax_kernels.run.executable import Runner

FEWEST = 4
"""Starting a recording of fewer steps saves less than finding it costs."""
MOST = 8
"""Recordings kept for the same steps."""


def joined(runtime: Runtime, steps: Sequence[Step], runner: Callable[[Step], Runner]) -> Iterator[Runner]:
    """The runners of ``steps``. Those between library calls, which may wait or allocate, become one."""
    for are_calls, some in groupby(steps, lambda s: isinstance(s, CallStep | ControlStep)):
        runners = [runner(s) for s in some]
        if are_calls or len(runners) < FEWEST:
            yield from runners
        else:
            yield Recorded(runtime, runners)


class Recorded:
    """Some steps; the second time that they run on the same memory, they are recorded."""

    def __init__(self, runtime: Runtime, steps: Sequence[Runner]) -> None:
        self.runtime = runtime
        self.steps = steps
        self._known: OrderedDict[tuple[int, ...], Any] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, bases: Sequence[Any]) -> None:
        key = tuple(0 if b is None else self.runtime.address(b.memory) + b.offset for b in bases)
        seen, recording = key in self._known, self._known.get(key)
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
