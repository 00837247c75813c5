"""Plans as CUDA graphs: one call starts all kernels of a plan, where each would take some microseconds of Python.

A graph holds addresses. A loop that calls a program again and again gets the same few blocks from the memory pool, so
graphs are kept by the addresses that they were made for; the first run on any is an ordinary one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from polyax_kernels.executable import Runner
from polyax_kernels.gpu.executable import GpuExecutable
from polyax_kernels.plan import CallStep, Step

FEWEST_STEPS = 4
"""A graph of fewer steps saves less than finding it costs."""
MOST_GRAPHS = 8
"""Kept for one run of steps."""


class CudaExecutable(GpuExecutable):
    """Steps between library calls, which may wait or allocate, become graphs."""

    def runners(self, steps: Sequence[Step]) -> list[Runner]:
        runners: list[Runner] = []
        recorded: list[Runner] = []
        for step in (*steps, None):
            if step is not None and not isinstance(step, CallStep):
                recorded.append(self.runner(step))
                continue
            runners += [Recorded(self.runtime, recorded)] if len(recorded) >= FEWEST_STEPS else recorded
            runners += [] if step is None else [self.runner(step)]
            recorded = []
        return runners


class Recorded:
    """Some steps; the second time that they run on the same memory, they are recorded."""

    def __init__(self, runtime: Any, steps: Sequence[Runner]) -> None:
        self.runtime = runtime
        self.steps = steps
        self.lock = threading.Lock()
        self.graphs: OrderedDict[tuple[int, ...], Any] = OrderedDict()

    def __call__(self, bases: Sequence[Any]) -> None:
        key = tuple(0 if b is None else b.memory.ptr for b in bases)
        seen, graph = key in self.graphs, self.graphs.get(key)
        if seen and graph is None:
            graph = self.runtime.record(lambda: self.run(bases))
        with self.lock:
            self.remember(key, graph)
        if graph is None:
            self.run(bases)
        else:
            self.runtime.play(graph)

    def run(self, bases: Sequence[Any]) -> None:
        for step in self.steps:
            step(bases)

    def remember(self, key: tuple[int, ...], graph: Any) -> None:
        self.graphs[key] = graph
        self.graphs.move_to_end(key)
        if len(self.graphs) > MOST_GRAPHS:
            self.graphs.popitem(last=False)
