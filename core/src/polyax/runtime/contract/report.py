"""Reports: what an executable consists of, for people. ``explain`` and ``draw`` show them, tests read them.

Data alone; every backend fills in what it knows.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from polyax.ir.aval import ShapedArray
from polyax.runtime.contract.listing import Listing


@dataclass(frozen=True)
class Decision:
    """A fuser's choice about one pair; ``reason`` is None when they were fused."""

    fuser: str
    producer: str
    consumer: str
    reason: str | None
    equations: tuple[int, ...] = ()
    """The numbers of the equations that the producer computes."""


@dataclass
class KernelReport:
    """One step of a program: a kernel, a library call, or a copy of memory."""

    name: str
    primitives: tuple[str, ...]
    """The primitives whose work it does."""
    bytes_moved: int
    flops: int
    source: str = ""
    kind: Literal["kernel", "call", "copy"] = "kernel"
    outputs: tuple[ShapedArray, ...] = ()
    """What it writes."""
    equations: tuple[int, ...] = ()
    """The numbers of the equations that it computes, in the order of ``Report.program``."""

    @property
    def fused(self) -> str:
        """Its primitives in order, repeated ones counted: ``mul×3 sin``."""
        counts = Counter(self.primitives)
        return " ".join(name if n == 1 else f"{name}×{n}" for name, n in counts.items())


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
    """All steps, library calls and copies among them, in the order in which they run."""
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

    @property
    def refusals(self) -> dict[str, list[Decision]]:
        """The decisions against fusing, by their reasons; the commonest reason first. Reasons that differ in numbers
        alone are one, with ``N`` for the numbers."""
        found: dict[str, list[Decision]] = {}
        for d in self.decisions:
            if d.reason is not None:
                found.setdefault(re.sub(r"\d+", "N", d.reason), []).append(d)
        named = {_common(pattern, decisions): decisions for pattern, decisions in found.items()}
        return dict(sorted(named.items(), key=lambda item: -len(item[1])))


def _common(pattern: str, decisions: list[Decision]) -> str:
    """The reason itself where all give the same."""
    reasons = {d.reason for d in decisions}
    return reasons.pop() or "" if len(reasons) == 1 else pattern
