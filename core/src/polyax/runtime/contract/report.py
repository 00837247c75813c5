"""Reports: what an executable consists of, for people. ``explain`` and ``draw`` show them, tests read them.

Data alone; every backend fills in what it knows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from polyax.ir.aval import ShapedArray
from polyax.runtime.contract.listing import Listing

Kind = Literal["kernel", "call", "copy", "loop", "branch"]


@dataclass(frozen=True)
class Decision:
    """A fuser's choice about one pair; ``reason`` is None when they were fused."""

    fuser: str
    producer: str
    consumer: str
    reason: str | None
    equations: tuple[int, ...] = ()
    """The numbers of the equations that the producer computes."""


def counted(primitives: Iterable[str]) -> str:
    """Names in order, repeated ones counted.

    >>> counted(["mul", "sin", "mul", "mul"])
    'mul×3 sin'
    """
    counts = Counter(map(str, primitives))
    return " ".join(name if n == 1 else f"{name}×{n}" for name, n in counts.items())


@dataclass
class KernelReport:
    """One step of a program: a kernel, a library call, a copy of memory, or a loop or branch with steps of its own."""

    name: str
    primitives: tuple[str, ...]
    """The primitives whose work it does."""
    bytes_moved: int
    flops: int
    source: str = ""
    kind: Kind = "kernel"
    outputs: tuple[ShapedArray, ...] = ()
    """What it writes."""
    equations: tuple[int, ...] = ()
    """The numbers of the equations that it computes, in the order of ``Report.program``."""
    rules: tuple[str, ...] = ()
    """Whose lowerings say how: a plugin's, ``shared``, ``decomposition of NAME``, ``host``; each once."""
    programs: tuple[ProgramReport, ...] = ()
    """What a loop or a branch runs; ``bytes_moved`` and ``flops`` are those of all turns, or of the longest branch."""
    turns: int | None = None
    """How often a loop turns, if that is known."""

    @property
    def fused(self) -> str:
        """Its primitives in order, repeated ones counted: ``mul×3 sin``."""
        return counted(self.primitives)


@dataclass
class ProgramReport:
    """A program that a loop or a branch runs: its test, its body, or one of its branches."""

    role: str
    kernels: list[KernelReport]
    decisions: list[Decision]
    program: Listing | None = None
    """The equations that ``KernelReport.equations`` number; kept if the options ask for ``stages``."""


@dataclass(frozen=True)
class BufferReport:
    """Memory that a launch uses."""

    role: Literal["input", "result", "arena"]
    nbytes: int
    aval: ShapedArray | None = None
    note: str = ""
    """What is special about it: donated, or whose memory it is."""


@dataclass(frozen=True)
class Snapshot:
    """The program as it is after a phase of compilation, as text."""

    name: str
    text: str


@dataclass
class Report:
    """What an executable consists of."""

    backend: str
    kernels: list[KernelReport] = field(default_factory=list)
    """All steps, library calls and copies among them, in the order in which they run. Steps of loops are in these."""
    decisions: list[Decision] = field(default_factory=list)
    arena_bytes: int = 0
    bytes_unfused: int = 0
    """The bytes that the program would move if each equation were a kernel."""
    compile_seconds: float = 0.0
    buffers: list[BufferReport] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds per phase of compilation."""
    program: Listing | None = None
    """The equations that ``KernelReport.equations`` number; kept if the options ask for ``stages``."""
    stages: list[Snapshot] = field(default_factory=list)
    """Kept if the options ask for them."""

    @property
    def bytes_moved(self) -> int:
        return sum(k.bytes_moved for k in self.kernels)

    @property
    def flops(self) -> int:
        return sum(k.flops for k in self.kernels)

    def steps(self) -> Iterator[KernelReport]:
        """All steps, those of loops and branches behind these."""
        return walk(self.kernels)

    @property
    def all_decisions(self) -> list[Decision]:
        """Those made in loops and branches too."""
        inner = (d for step in self.steps() for program in step.programs for d in program.decisions)
        return [*self.decisions, *inner]

    @property
    def refusals(self) -> dict[str, list[Decision]]:
        """The decisions against fusing, by their reasons; the commonest reason first. Reasons that differ in numbers
        alone are one, with ``N`` for the numbers."""
        found: dict[str, list[Decision]] = {}
        for d in self.all_decisions:
            if d.reason is not None:
                found.setdefault(re.sub(r"\d+", "N", d.reason), []).append(d)
        named = {_common(pattern, decisions): decisions for pattern, decisions in found.items()}
        return dict(sorted(named.items(), key=lambda item: -len(item[1])))


def walk(kernels: Iterable[KernelReport]) -> Iterator[KernelReport]:
    """Steps, each before those that it holds."""
    for step in kernels:
        yield step
        for program in step.programs:
            yield from walk(program.kernels)


def _common(pattern: str, decisions: list[Decision]) -> str:
    """The reason itself where all give the same."""
    reasons = {d.reason for d in decisions}
    return reasons.pop() or "" if len(reasons) == 1 else pattern
