"""``config.debug_backend``: programs of a platform run beside the reference, and stop at the first step that differs.

A step is a kernel or a call, as the backend's report tells; of a backend that tells nothing, an equation. Slow: all
values are copied to the host. Must not know what steps are made of.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyax.ir import blame, dtypes
from polyax.ir.aval import ShapedArray
from polyax.ir.errors import Disagreement
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, Literal, Var, walk_eqns
from polyax.reference.backend import ReferenceBackend
from polyax.reference.interpreter import called
from polyax.runtime.contract import edge, questions
from polyax.runtime.contract.backend import CompileOptions, Device, Executable
from polyax.runtime.contract.listing import Line, Listing, flatten
from polyax.runtime.contract.report import KernelReport, Report
from polyax.runtime.contract.tracebacks import warn_user
from polyax.runtime.contract.whose import broken, owner
from polyax.transforms.vmap import axes_of

TOLERANCES = {"bfloat16": 1e-1, "float16": 1e-2, "float32": 2e-3, "float64": 1e-5}
"""What may differ, of the largest finite value."""
TOGETHER = "each of its steps is right on its own, so the fault is in how they are put together"
LONGEST = 300
"""Letters of a program that an error shows."""
Values = Sequence[np.ndarray]


class ComparedStep(NamedTuple):
    """Some equations of a program, and what a backend calls them."""

    name: str
    lines: Sequence[Line]


def beside(inner: Executable, closed: ClosedJaxpr, options: CompileOptions) -> Executable:
    """``inner``, compared with the reference whenever it runs; as it is, if that can't be done: users are told."""
    pure = pure_part(closed)
    if axes_of(closed) or (options.members > 1 and closed.effects):
        reason = "its devices meet in collectives or effects; run it on one, by vmap"
    elif pure is None:
        names = ", ".join(sorted({e.primitive.name for e in walk_eqns(closed.jaxpr) if e.effects}))
        reason = f"its values depend on effects ({names}); take these out, or give what they give as arguments"
    else:
        return Beside(inner, closed, pure, options)
    what = f"program {options.name!r} on {options.device} isn't compared with the reference"
    warn_user(f"POLYAX_DEBUG_BACKEND: {what}: {reason}")
    return inner


class Beside(Executable):
    """An executable that is compared with the reference whenever it runs."""

    def __init__(self, inner: Executable, closed: ClosedJaxpr, pure: PurePart, options: CompileOptions) -> None:
        self.inner = inner
        self.closed = closed
        self.pure = pure
        self.options = options
        self.device = options.device

    def report(self) -> Report:
        return self.inner.report()

    def progress(self) -> str:
        return self.inner.progress()

    def launch(self, buffers: Sequence[Any], queue: Any) -> tuple[list[Any], Any]:
        avals = [v.aval.stored for v in (*self.closed.jaxpr.constvars, *self.closed.jaxpr.invars)]
        given = _on_host(buffers, avals, self.device)
        outs, token = edge.launcher(self.inner, self.device, self.options.name, self.closed.out_avals)(buffers, queue)
        got = _on_host(outs, [a.stored for a in self.closed.out_avals], self.device)
        self._check_inputs(buffers, avals, given)
        closed, inputs = self.pure.closed, self.pure.inputs(given)
        want = on_reference(closed, inputs)
        if (fault := difference(got, want)) is not None:
            whole = Mismatch(self.closed, given, got, want, fault)
            raise self._first_wrong(closed, inputs) or self._told(f"as a whole ({TOGETHER})", whole)
        return list(outs), token

    def _check_inputs(self, buffers: Sequence[Any], avals: Sequence[ShapedArray], given: Values) -> None:
        donated = self.options.donated or (False,) * len(avals)
        for n, (b, aval, before, gone) in enumerate(zip(buffers, avals, given, donated, strict=True)):
            if not gone and difference(_on_host([b], [aval], self.device), [before], exact=True) is not None:
                what = f"input {n} ({aval}) of program {self.options.name!r}, which wasn't donated"
                for plugin, part, results, remedy in questions.meanings(self.closed, self._options(self.closed), given):
                    if isinstance(results, Exception):
                        raise Disagreement(f"{plugin}, by {part}, wrote to {what}: {results}. The remedy: {remedy}")
                raise broken(self.device, f"launch wrote to {what}: other arrays may have that memory")

    def _first_wrong(self, closed: ClosedJaxpr, given: Values) -> Disagreement | None:
        """A kernel or a call; else an equation that others are in place of; None, if all are right on their own."""
        executable = self.inner if closed is self.closed else self._compiled(closed)
        report, plain = executable.report(), flatten(closed.jaxpr, called)
        for listing, kernels in ((report.program or plain, report.kernels), (plain, ())):
            values = values_of(listing, given)
            for step in steps_of(listing, kernels):
                found = self._compared(step, listing, values)
                if found is not None:
                    return self._told(f"in {step.name}", self._narrower(step, listing, values) or found)
        return None

    def _narrower(self, step: ComparedStep, listing: Listing, values: Mapping[int, Any]) -> Mismatch | None:
        """The first equation of the step that is wrong on its own."""
        for line in step.lines if len(step.lines) > 1 else ():
            alone = self._compared(ComparedStep(step.name, [line]), listing, values)
            if alone is not None:
                return alone
        return None

    def _compared(self, step: ComparedStep, listing: Listing, values: Mapping[int, Any]) -> Mismatch | None:
        closed, inputs = program_of(step.lines, listing, _wanted(step.lines, listing))
        given = [np.asarray(values[v]) for v in inputs]
        want = [np.asarray(values[v]) for v in _wanted(step.lines, listing)]
        buffers = [edge.to_device(np.ascontiguousarray(x), self.device) for x in given]
        outs, _ = self._compiled(closed).launch(buffers, self.device.queue)
        got = _on_host(outs, [a.stored for a in closed.out_avals], self.device)
        fault = difference(got, want)
        return None if fault is None else Mismatch(closed, given, got, want, fault)

    def _compiled(self, closed: ClosedJaxpr) -> Executable:
        return edge.compile_for(self.device, closed, self._options(closed))

    def _options(self, closed: ClosedJaxpr) -> CompileOptions:
        return replace(self.options, donated=(), stages=True, effects=closed.jaxpr.effects)

    def _told(self, where: str, found: Mismatch) -> Disagreement:
        kernels = self._compiled(found.closed).report().kernels
        return told(self.device, self.options.name, self._guilty(found), where, found, kernels)

    def _guilty(self, found: Mismatch) -> Guilty:
        """The first part of the backend's compiler after which the program is wrong; else what runs it."""
        backend = owner(self.device.backend)
        last = Guilty(backend.title, "", backend.remedy)
        for plugin, part, results, remedy in questions.meanings(found.closed, self._options(found.closed), found.given):
            if results is None:
                last = Guilty(plugin, part, remedy)
            elif isinstance(results, Exception):
                return Guilty(plugin, f"{part}, of whose program nothing can be computed ({results!r})", remedy)
            elif difference(results, found.want) is not None:
                return Guilty(plugin, part, remedy)
        return last


class PurePart(NamedTuple):
    """A program without its effects, and what it takes of the inputs of that with them."""

    closed: ClosedJaxpr
    taken: Sequence[int]
    """Numbers of values."""
    listing: Listing | None = None

    def inputs(self, given: Values) -> Values:
        if self.listing is None:
            return given
        values = {**self.listing.literals, **dict(zip(self.listing.inputs, given, strict=True))}
        return [np.asarray(values[v]) for v in self.taken]


def pure_part(closed: ClosedJaxpr) -> PurePart | None:
    """What can be computed twice: all but equations that only have effects. None, if others depend on effects."""
    if not closed.jaxpr.effects:
        return PurePart(closed, ())
    listing = flatten(closed.jaxpr, called)
    lines = [line for line in listing.lines if line.outs or not line.eqn.effects]
    made = {v for line in lines for v in line.outs}
    if any(line.eqn.effects for line in lines) or not made.issuperset(listing.outputs):
        return None
    return PurePart(*program_of(lines, listing, listing.outputs), listing)


class Guilty(NamedTuple):
    """Whose fault it is, which part of what they bring, and what can be done."""

    plugin: str
    part: str
    remedy: str


class Mismatch(NamedTuple):
    """A program that a backend computes otherwise than the reference does."""

    closed: ClosedJaxpr
    given: Values
    got: Values
    want: Values
    fault: str


def _on_host(buffers: Sequence[Any], avals: Sequence[ShapedArray], device: Device) -> Values:
    """Copies: what is shared with the host may change."""
    return [np.array(edge.to_host(b, a, device)) for b, a in zip(buffers, avals, strict=True)]


def values_of(listing: Listing, given: Values) -> dict[int, Any]:
    """What each value of a program is, by the reference."""
    values = {**listing.literals, **dict(zip(listing.inputs, given, strict=True))}
    for line in listing.lines:
        closed, inputs = program_of([line], listing, line.outs)
        values.update(zip(line.outs, on_reference(closed, [np.asarray(values[v]) for v in inputs]), strict=True))
    return values


def on_reference(closed: ClosedJaxpr, given: Values) -> Values:
    """The results of a program for its constants and inputs."""
    backend = ReferenceBackend()
    (device, *_) = backend.devices()
    outs, _ = backend.compile(closed, CompileOptions(device, name="reference")).launch(
        [backend.to_device(x, device) for x in given], device.queue
    )
    return [backend.to_host(b, a.stored) for b, a in zip(outs, closed.out_avals, strict=True)]


# --- steps ------------------------------------------------------------------------------------------------------------


def steps_of(listing: Listing, kernels: Iterable[KernelReport]) -> list[ComparedStep]:
    """The steps of a backend in order; equations that none of them names are steps of their own."""
    steps = [
        ComparedStep(f"{k.kind} {k.name!r}, which computes {k.fused}", [listing.lines[n] for n in k.equations])
        for k in kernels
        if k.equations and k.equations[-1] < len(listing.lines)
    ]
    named = {id(line) for step in steps for line in step.lines}
    return steps + [
        ComparedStep(f"equation {line.eqn.primitive}", [line]) for line in listing.lines if id(line) not in named
    ]


def _wanted(lines: Sequence[Line], listing: Listing) -> list[int]:
    """The values that some lines make and others need."""
    made = {v: None for line in lines for v in line.outs}
    inside = {id(line) for line in lines}
    needed = {v for line in listing.lines if id(line) not in inside for v in line.inputs} | set(listing.outputs)
    return [v for v in made if v in needed] or list(made)


def program_of(lines: Sequence[Line], listing: Listing, wanted: Sequence[int]) -> tuple[ClosedJaxpr, list[int]]:
    """Some lines as a program of their own, and the values that it takes."""
    made = {v for line in lines for v in line.outs}
    scalar = {v for v, x in listing.literals.items() if not np.ndim(x)}
    inputs = list(dict.fromkeys(v for line in lines for v in line.inputs if v not in made and v not in scalar))
    variables = {v: Var(listing.avals[v]) for v in (*inputs, *made)}

    def atom(v: int) -> Atom:
        return variables[v] if v in variables else Literal(listing.literals[v], listing.avals[v])

    eqns = [
        line.eqn.replace(invars=[atom(v) for v in line.inputs], outvars=[variables[v] for v in line.outs])
        for line in lines
    ]
    outs = [variables[v] for v in wanted]
    return ClosedJaxpr(Jaxpr([], [variables[v] for v in inputs], outs, eqns), []), inputs


# --- what is found ----------------------------------------------------------------------------------------------------


def difference(got: Values, want: Values, *, exact: bool = False) -> str | None:
    """Where the first of these differ by more than rounding; None, if none does."""
    for n, (a, b) in enumerate(zip(got, want, strict=True)):
        wrong = _wrong(a, b, exact)
        if wrong.any():
            at = tuple(map(int, np.argwhere(wrong)[0]))
            return (
                f"result {n} is {a[at]} at {at}, where the reference has {b[at]}; {wrong.sum()} of {wrong.size} differ"
            )
    return None


def _wrong(a: np.ndarray, b: np.ndarray, exact: bool) -> np.ndarray:
    kind = dtypes.real_part(b.dtype) if dtypes.is_inexact(b.dtype) else None
    wide = np.complex128 if np.iscomplexobj(b) else np.float64
    if kind is None:
        return a != b
    x, y = a.astype(wide), b.astype(wide)
    size = np.max(np.abs(y[np.isfinite(y)]), initial=0)
    allowed = 0.0 if exact else TOLERANCES.get(kind.name, 1e-1) * size
    with np.errstate(invalid="ignore"):
        return ~((x == y) | (np.abs(x - y) <= allowed) | (np.isnan(x) & np.isnan(y)))


def told(
    device: Device, name: str, guilty: Guilty, where: str, found: Mismatch, kernels: Sequence[KernelReport]
) -> Disagreement:
    """The error; what is needed to look into it is in a folder that it names."""
    folder = Path(tempfile.mkdtemp(prefix="polyax-disagreement-"))
    for what, values in (("input", found.given), ("got", found.got), ("want", found.want)):
        for n, x in enumerate(values):
            np.save(folder / f"{what}{n}.npy", x, allow_pickle=False)
    source = next((e.source for e in found.closed.jaxpr.eqns if e.source is not None), "an unknown place")
    text = (
        f"{guilty.plugin}{guilty.part and ', by ' + guilty.part + ','} computes program {name!r} on {device} otherwise "
        f"than the reference, {where}: {found.fault}. Asked for at {source}. It computes {one_line(found.closed)}. "
        f"The remedy: {guilty.remedy or 'please report it'}. Inputs, results, equations and the program's text are in "
        f"{folder}"
    )
    (folder / "what.txt").write_text(text + "\n")
    (folder / "equations.txt").write_text(f"{found.closed}\n")
    (folder / "source.txt").write_text("\n\n".join(f"// {k.name}\n{k.source}" for k in kernels) + "\n")
    error = Disagreement(text)
    blame.about(error, plugin=guilty.plugin, told=True)
    return error


def one_line(closed: ClosedJaxpr) -> str:
    """The program as text, as far as it is short."""
    text = " ".join(str(closed).split())
    return text if len(text) <= LONGEST else text[:LONGEST] + " ..."
