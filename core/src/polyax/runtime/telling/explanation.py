"""What ``explain`` gives: the report of a compiled program as a table of plain text.

Shows what the report says; must not know how any backend compiles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from polyax.ir.jaxpr import ClosedJaxpr, walk_eqns
from polyax.meshes.mesh import Mesh
from polyax.partition.reshard import Move
from polyax.runtime.contract.backend import Device
from polyax.runtime.contract.report import BufferReport, Decision, KernelReport, Report
from polyax.runtime.contract.text import columns, count, plural, size, width

MOST = 60
"""Rows of a table; programs with more kernels are cut there, the object has them all."""
EXAMPLES, LETTERS = 3, 60
"""Pairs that are shown of each reason, and how much of their names."""
SHORTEST = 5e-5
"""Seconds of the shortest pass that is named."""
TYPES = 2
"""Kinds of results that are shown of each kernel."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """A compiled program: its ``jaxpr``, and the ``report`` with kernels, decisions, buffers and sources."""

    name: str
    device: Device | Mesh
    """Of a program on a mesh, the rest is about one of its devices."""
    jaxpr: ClosedJaxpr
    report: Report
    moves: tuple[Move, ...] = ()
    """What the devices of a mesh exchange, and why."""

    def __str__(self) -> str:
        return self.text(width())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from polyax.runtime.telling.folded import WIDTH, folded  # only they need it

        return folded(self.text(WIDTH), repr(self.jaxpr), self.report.steps())

    def text(self, room: int) -> str:
        """The table in lines of at most ``room`` characters, as far as names allow."""
        report = self.report
        sections = {
            "exchanged": _moves(self.moves, room),
            "kernels": _kernels(report.kernels, room),
            "buffers": _buffers(report.buffers, room),
            "fused": _fused(report.all_decisions, room),
            "not fused": _refusals(report.refusals, room),
        }
        head = "\n".join(_summary(self))
        return "\n\n".join([head, *("\n".join([name, *lines]) for name, lines in sections.items() if lines)])


def _summary(told: Explanation) -> Iterator[str]:
    report = told.report
    kinds = Counter(k.kind for k in report.steps())
    names = {"loop": "loop", "branch": "branching", "kernel": "kernel", "call": "library call", "copy": "copy"}
    steps = [plural(kinds[kind], noun) for kind, noun in names.items() if kinds[kind]] or ["nothing to compute"]
    where = told.device if isinstance(told.device, Device) else f"each device of {told.device}"
    yield f"{told.name} on {where}: {', '.join(steps)} for {plural(len(told.jaxpr.eqns), 'equation')}"
    if told.moves:
        sent, exchanges = size(sum(m.total for m in told.moves)), plural(len(told.moves), "exchange")
        yield f"{sent} sent by each device in {exchanges}, for which devices meet at {plural(_meetings(told), 'place')}"
    before = f" ({size(report.bytes_unfused)} before fusion)" if report.bytes_unfused else ""
    yield f"{size(report.bytes_moved)} moved{before}, {count(report.flops)} operations"
    phases = ", ".join(f"{name} {1e3 * s:.1f}" for name, s in report.phases.items() if s >= SHORTEST)
    yield f"compiled in {1e3 * report.compile_seconds:.1f} ms" + (f" ({phases})" if phases else "")


def _meetings(told: Explanation) -> int:
    """How many equations exchange something: one may do it for several values."""
    return sum(e.primitive.axes is not None and len(e.invars) > 0 for e in walk_eqns(told.jaxpr.jaxpr))


def _moves(moves: Sequence[Move], room: int) -> list[str]:
    head = ("", "collective", "along", "", "sent", "of", "why", "for")
    rows = [
        (
            "",
            m.collective,
            ", ".join(map(str, m.axes)),
            f"×{m.times}" if m.times > 1 else "",
            size(m.nbytes),
            str(m.aval),
            m.reason,
            m.source,
        )
        for m in moves
    ]
    more = [f"  ... and {len(rows) - MOST} more, in .moves"] if len(rows) > MOST else []
    return columns([head, *rows[:MOST]] if rows else [], room, right=(4,)) + more


def _kernels(kernels: Sequence[KernelReport], room: int) -> list[str]:
    head = ("", "#", "", "kind", "moved", "operations", "result", "computes")
    rows = list(_rows(kernels))
    lines = columns([head, *rows[:MOST]] if rows else [], room, right=(4, 5))
    return lines + ([f"  ... and {len(rows) - MOST} more, in .report.kernels"] if len(rows) > MOST else [])


def _rows(kernels: Sequence[KernelReport], number: str = "", depth: int = 0) -> Iterator[tuple[str, ...]]:
    """Equal steps share a row, which has the number of the first: networks repeat themselves. The steps of a loop
    stand below it, with what they move and compute in one turn."""
    found: dict[tuple[str, ...], list[int]] = {}
    for n, k in enumerate(kernels):
        found.setdefault((*_work(k, depth), repr(k.programs)), []).append(n)
    for (*row, _), at in found.items():
        yield "", f"{number}{at[0]}", f"×{len(at)}" if len(at) > 1 else "", *row
        for part, program in enumerate(kernels[at[0]].programs):
            inner = f"{number}{at[0]}.{part}." if len(kernels[at[0]].programs) > 1 else f"{number}{at[0]}."
            yield "", "", "", f"{'  ' * (depth + 1)}{program.role}", "", "", "", _often(kernels[at[0]], program.role)
            yield from _rows(program.kernels, inner, depth + 2)


def _work(k: KernelReport, depth: int) -> tuple[str, ...]:
    whose = "" if set(k.rules) <= {"shared"} else f" (by {', '.join(k.rules)})"
    return f"{'  ' * depth}{k.kind}", size(k.bytes_moved), count(k.flops), _types(k), k.fused + whose


def _often(step: KernelReport, role: str) -> str:
    """How often a program within a step runs."""
    if step.kind == "branch":
        return ""
    if step.turns is None:
        return "before each turn" if role == "test" else "while the test holds"
    return plural(step.turns, "turn")


def _types(kernel: KernelReport) -> str:
    counts = Counter(str(a) for a in kernel.outputs)
    names = [f"{name}×{n}" if n > 1 else name for name, n in counts.items()]
    return " ".join(names[:TYPES]) + (" ..." if len(names) > TYPES else "")


def _buffers(buffers: Sequence[BufferReport], room: int) -> list[str]:
    """Equal ones are counted: a network has a hundred inputs of a few shapes."""
    counts = Counter((b.role, "" if b.aval is None else str(b.aval), b.nbytes, b.note) for b in buffers)
    rows = [
        ("", role, aval, f"{n} of" if n > 1 else "", size(nbytes), note)
        for (role, aval, nbytes, note), n in counts.items()
    ]
    more = [f"  ... and {plural(len(rows) - MOST, 'other kind')}"] if len(rows) > MOST else []
    return columns(rows[:MOST], room, right=(3, 4)) + more


def _fused(decisions: Sequence[Decision], room: int) -> list[str]:
    counts = Counter(d.fuser for d in decisions if d.reason is None)
    return columns([("", fuser, plural(n, "time")) for fuser, n in counts.items()], room)


def _refusals(refusals: dict[str, list[Decision]], room: int) -> list[str]:
    rows = [
        ("", f"{len(found)}×", ", ".join(dict.fromkeys(d.fuser for d in found)), f"{reason}: {_pairs(found)}")
        for reason, found in refusals.items()
    ]
    more = [f"  ... and {len(rows) - MOST} more reasons, in .report.refusals"] if len(rows) > MOST else []
    return columns(rows[:MOST], room, right=(1,)) + more


def _pairs(decisions: Sequence[Decision]) -> str:
    pairs = list(dict.fromkeys(f"{_short(d.producer)} → {_short(d.consumer)}" for d in decisions))
    return "; ".join(pairs[:EXAMPLES]) + ("; ..." if len(pairs) > EXAMPLES else "")


def _short(names: str) -> str:
    return names if len(names) <= LETTERS else names[:LETTERS] + "..."
