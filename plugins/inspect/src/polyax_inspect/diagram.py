"""What is drawn: equations as nodes, the equations of one kernel as a group, values as wires between them.

Made from a program and a report; knows nothing of places and colours. An equation that several kernels compute stands
in the first of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

import numpy as np

from polyax.backend import Eqn, KernelReport, Line, Listing, ProgramReport, Report, Var
from polyax.ir.pretty import pretty_eqn, variable_names

Kind = Literal["argument", "result", "kernel", "call", "exchange", "copy", "loop", "branch", "free", "dead"]
TEXT = 1500
"""Characters of an equation or a source in a tooltip."""


@dataclass(frozen=True)
class Box:
    """An equation, an argument or a result: its name, what it gives, and what else there is to tell of it."""

    name: str
    detail: str
    tip: str
    equation: int | None = None
    inner: tuple[tuple[str, Diagram], ...] = ()
    """The programs that a loop or a branch runs, with their parts in it."""


@dataclass
class Border:
    """A box: the equations that one kernel computes, or a single node. ``kernels``: positions in the report."""

    kind: Kind
    nodes: list[int]
    kernels: tuple[int, ...] = ()
    title: str = ""
    tip: str = ""


@dataclass(frozen=True)
class Wire:
    """Value ``value`` goes from one node to another."""

    source: int
    target: int
    value: int
    tip: str


@dataclass
class Diagram:
    nodes: list[Box] = field(default_factory=list)
    groups: list[Border] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    home: list[int] = field(default_factory=list)
    """Box -> the group that it stands in."""


def exchanges(eqn: Eqn) -> bool:
    """Whether devices exchange something in it: along named axes, it takes what each of them has."""
    return eqn.primitive.axes is not None and bool(eqn.invars)


def make_diagram(program: Listing, report: Report | ProgramReport) -> Diagram:
    """The diagram of a program that was compiled to what ``report`` says; loops and branches hold diagrams."""
    return _Maker(program, report).make()


class _Maker:
    def __init__(self, program: Listing, report: Report | ProgramReport) -> None:
        self.program = program
        self.report = report
        self.names = names_of(program)
        self.diagram = Diagram()
        self.made_by: dict[int, int] = {}
        """Value -> the node that makes it."""
        self.kernels: dict[int, list[int]] = {}
        """Equation -> the kernels that compute it."""
        for k, kernel in enumerate(report.kernels):
            for e in kernel.equations:
                self.kernels.setdefault(e, []).append(k)
        self.live = needed(program)
        self.refusals = refusals(report)
        self.boxes: dict[int, int] = {}
        """Kernel -> its group."""

    def make(self) -> Diagram:
        for v in self.program.inputs:
            self.made_by[v] = self.single("argument", Box(self.names[v], self.type(v), f"argument {self.typed(v)}"))
        for e, line in enumerate(self.program.lines):
            self.equation(e, line)
        self.others()
        for v in self.program.outputs:
            node = self.single("result", Box(self.names[v], self.type(v), f"result {self.typed(v)}"))
            self.wire(v, node)
        return self.diagram

    def single(self, kind: Kind, node: Box) -> int:
        """Adds a node that stands on its own."""
        self.diagram.groups.append(Border(kind, []))
        return self.add(node, len(self.diagram.groups) - 1)

    def add(self, node: Box, group: int) -> int:
        number = len(self.diagram.nodes)
        self.diagram.nodes.append(node)
        self.diagram.home.append(group)
        self.diagram.groups[group].nodes.append(number)
        return number

    def equation(self, e: int, line: Line) -> None:
        node = self.add(self.node(e, line), self.group(e, line))
        for v in dict.fromkeys(line.inputs):
            self.wire(v, node)
        for v in line.outs:
            self.made_by.setdefault(v, node)

    def group(self, e: int, line: Line) -> int:
        """The box that equation ``e`` stands in, made when its first equation comes."""
        groups, kernels = self.diagram.groups, self.kernels.get(e)
        if not kernels:
            groups.append(Border("free" if self.live[e] else "dead", []))
            return len(groups) - 1
        first = kernels[0]
        if first not in self.boxes:
            self.boxes[first] = len(groups)
            groups.append(Border(self.report.kernels[first].kind, []))
            self.tell(groups[-1], first)
        return self.boxes[first]

    def tell(self, group: Border, k: int) -> None:
        """Adds kernel ``k`` to what a group stands for."""
        kernel = self.report.kernels[k]
        group.title = f"{group.title} #{k}".lstrip() if group.kernels else f"#{k} {kernel.name}"
        group.tip = "\n\n".join(filter(None, [group.tip, kernel_tip(k, kernel)]))
        group.kernels = (*group.kernels, k)
        if any(exchanges(self.program.lines[e].eqn) for e in kernel.equations):
            group.kind = "exchange"
        elif kernel.kind != "copy":
            group.kind = kernel.kind

    def others(self) -> None:
        """Kernels whose equations all stand in other boxes join one; a large reduction takes two kernels, say. Those
        that no equation asked for (a constant result) become nodes."""
        standing = {n.equation: g for n, g in zip(self.diagram.nodes, self.diagram.home) if n.equation is not None}
        for k, kernel in enumerate(self.report.kernels):
            if k in self.boxes:
                continue
            if kernel.equations:
                self.tell(self.diagram.groups[standing[kernel.equations[-1]]], k)
            else:
                self.single(kernel.kind, Box(kernel.name, ", ".join(map(str, kernel.outputs)), kernel_tip(k, kernel)))
                self.tell(self.diagram.groups[-1], k)

    def why_free(self, e: int, line: Line) -> str:
        if not self.live[e]:
            return "nobody needs it: it is not computed"
        if line.outs and line.outs[0] in self.made_by:
            return "equal to an earlier equation: it is computed once"
        return "only another view of memory, or part of something else: it needs no kernel"

    def node(self, e: int, line: Line) -> Box:
        eqn, names = line.eqn, self.names
        scalars = [names[v] for v in line.inputs if v in self.program.literals]
        name = " ".join([eqn.primitive.name, *scalars])
        pairs = [*zip(eqn.invars, line.inputs), *zip(eqn.outvars, line.outs)]
        text = pretty_eqn(eqn, {a: names[v] for a, v in pairs if isinstance(a, Var)})
        source = f"\n{eqn.source}" if eqn.source else ""
        computed = ", ".join(f"#{k} {self.report.kernels[k].name}" for k in self.kernels.get(e, ()))
        where = f"\nkernel {computed}" if computed else f"\n{self.why_free(e, line)}"
        detail = ", ".join(f"{names[v]}:{self.type(v)}" for v in line.outs[:2]) + (
            ", ..." if len(line.outs) > 2 else ""
        )
        held = [p for k in self.kernels.get(e, ()) for p in self.report.kernels[k].programs]
        inner = tuple([(p.role, make_diagram(p.program, p)) for p in held if p.program is not None])
        return Box(name, detail, f"equation {e}: {cut(text)}{source}{where}", e, inner)

    def wire(self, v: int, node: int) -> None:
        if v in self.made_by:
            source = self.made_by[v]
            self.diagram.wires.append(Wire(source, node, v, self.typed(v) + self.why_apart(source, node)))

    def why_apart(self, source: int, target: int) -> str:
        """Why a value goes through memory, as the fusers tell."""
        diagram = self.diagram
        homes = [diagram.groups[diagram.home[n]] for n in (source, target)]
        if homes[0] is homes[1] or not all(g.kernels for g in homes):
            return ""
        equation = diagram.nodes[source].equation
        reasons = {} if equation is None else self.refusals.get(equation, {})
        return "".join(f"\nnot fused by {fuser}: {reason}" for fuser, reason in reasons.items())

    def type(self, v: int) -> str:
        return self.program.avals[v].str_short(True)

    def typed(self, v: int) -> str:
        return f"{self.names[v]}:{self.type(v)}"


def names_of(program: Listing) -> list[str]:
    """A name for each value: letters in the order of the program, as jaxprs have them; scalars are their own names."""
    order = dict.fromkeys([*program.inputs, *(v for line in program.lines for v in line.outs)])
    letters = dict(zip(order, islice(variable_names(), len(order))))
    return [
        _scalar(program.literals[v]) if v in program.literals else letters.get(v, "_")
        for v in range(len(program.avals))
    ]


def _scalar(value: object) -> str:
    if isinstance(value, np.ndarray) and value.ndim:  # which a decomposition brought along
        return f"{value.dtype}{list(value.shape)}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def refusals(report: Report | ProgramReport) -> dict[int, dict[str, str]]:
    """Equation -> fuser -> why it did not go further into a kernel; the last word of each fuser."""
    found: dict[int, dict[str, str]] = {}
    for d in report.decisions:
        for e in d.equations:
            found.setdefault(e, {}).pop(d.fuser, None)
            if d.reason is not None:
                found[e][d.fuser] = f"{d.reason} ({d.producer} → {d.consumer})"
    return found


def needed(program: Listing) -> list[bool]:
    """Per equation: whether a result depends on it, or it does something else than compute."""
    wanted, found = set(program.outputs), [False] * len(program.lines)
    for n in range(len(program.lines) - 1, -1, -1):
        line = program.lines[n]
        found[n] = bool(line.eqn.effects) or not wanted.isdisjoint(line.outs)
        if found[n]:
            wanted.update(line.inputs)
    return found


def kernel_tip(number: int, kernel: KernelReport) -> str:
    """All about a kernel, its source cut."""
    head = f"{kernel.kind} #{number} {kernel.name}\ncomputes {kernel.fused}"
    moved = f"{kernel.bytes_moved} bytes moved, {kernel.flops} operations"
    return "\n".join([head, moved, *([cut(kernel.source)] if kernel.source else [])])


def cut(text: str) -> str:
    return text if len(text) <= TEXT else text[:TEXT] + " ..."
