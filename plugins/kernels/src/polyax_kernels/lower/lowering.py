"""How a primitive runs on a backend: the kinds of lowering. Knows no primitive, and not who is asked first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.errors import PluginError
from polyax.ir.jaxpr import ClosedJaxpr, Eqn
from polyax.ir.primitive import Primitive
from polyax.runtime.contract.backend import Device
from polyax.runtime.contract.hooks import WhyNot
from polyax_kernels.ir.expr import Axis, Expr, cast, const, load
from polyax_kernels.ir.kernel import Stage
from polyax_kernels.ir.limits import Limits

Operands = Literal["host", "device"]
"""What a library call computes on."""
OPERANDS: dict[Operands, str] = {"host": "host arrays", "device": "views of a device's memory"}


def always(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Declines nothing."""
    return None


@dataclass(frozen=True)
class Target:
    """What a program is lowered for."""

    backend: str
    limits: Limits
    operands: Operands = "host"
    asked: Callable[[Eqn], str | None] | None = None
    """What the backend declines of the rules that it shares with others."""

    def declines(self, eqn: Eqn) -> str | None:
        """The reason why no rule but one that was brought for this backend is used here, or None."""
        return None if self.asked is None else self.asked(eqn)


class LoweringKind:
    """What all kinds have: a reason to decline, and the ``priority`` by which those of plugins are asked."""

    why_not: WhyNot
    priority: int

    def declines(self, target: Target, eqn: Eqn) -> str | None:
        """The reason not to use it here, or None."""
        return None if self.why_not is always else self.why_not([a.aval for a in eqn.invars], eqn.params)


@dataclass(frozen=True)
class Kernels(LoweringKind):
    """Loops: ``build(out, *reads, **params)`` gives the value of the result at the point ``out.i``.

    ``out`` is an ``Out``, each argument a ``Read``. What ``build`` returns is an expression, a tuple of them (one per
    result, all of one shape), an ``Update`` for kernels that store elsewhere than at their own point, or a list of
    them, each of which fills another part of the result.
    """

    build: Callable[..., Expr | tuple[Expr, ...] | Update | list[Update]]
    why_not: WhyNot = always
    priority: int = 0
    aliases: bool = False
    """The result has the elements of the first argument in the same order: if not fused, it is the same memory."""
    each: bool = False
    """The results differ in shape: ``build`` is asked for each of them, ``out.which`` says which."""

    def declines(self, target: Target, eqn: Eqn) -> str | None:
        reason = why_no_dtype([v.aval for v in (*eqn.invars, *eqn.outvars)], target.limits)
        return reason or super().declines(target, eqn)


@dataclass(frozen=True)
class Replace(LoweringKind):
    """A program takes the equation's place: ``program(avals, **params)``, a jaxpr of the same inputs and results."""

    program: Callable[..., ClosedJaxpr]
    why_not: WhyNot = always
    priority: int = 0
    apart: bool = False
    """What it computes is computed again even if an equal equation was met before."""


@dataclass(frozen=True)
class Call(LoweringKind):
    """A library call: ``run(ctx, outs, args, **params)`` fills ``outs``; ``ctx`` is a ``CallContext``.

    Or else ``prepare(ctx, out_avals, arg_avals, params)``, called once per executable, gives the function of
    ``(outs, args)`` that launches call. If that has ``records = True``, all it does is to put work into the queue,
    with memory that is there, so that a device may record it.
    """

    run: Callable[..., None] | None = None
    why_not: WhyNot = always
    priority: int = 0
    operands: Operands = "host"
    """What ``outs`` and ``args`` are: NumPy arrays of the avals' shapes, or the backend's views of the device."""
    prepare: Callable[..., Callable[..., None]] | None = None
    native: Callable[..., Any] | None = None
    """``native(arg_avals, out_avals, params)``: what compiled plans call instead, without Python, in the backend's own
    terms; None if this use needs Python, for which there is one of the above."""
    together: Callable[..., None] | None = None
    """Of a collective: ``together(outs, args, shared, **params)`` does it for all peers at once, see
    ``polyax.reference.rules_together``. Without it each member runs in a thread of its own, and waits there."""
    adds: Callable[..., Any] | None = None
    """``adds(arg_avals, params)``: a function ``(outs, args, shared)`` that writes the sum of what this call gives the
    members of a group for each of them, without their own results in between; None if this use has none."""
    some: Callable[..., Any] | None = None
    """``some(read, params)``: the call that gives only those of the results for which ``read`` holds, which are read;
    None if there is none."""
    sums: Any = None
    """Of a collective that does so: the node of the call whose results are added up."""
    waits: bool = False
    """It waits for the device, so launches that it is part of shouldn't run in the user's thread."""

    def __post_init__(self) -> None:
        if (self.run is None) == (self.prepare is None) and (self.run is not None or self.native is None):
            raise TypeError("a Call needs one function: run(ctx, outs, args, **params), or prepare= for one made ready")

    def declines(self, target: Target, eqn: Eqn) -> str | None:
        if self.operands != target.operands:
            return f"it computes on {OPERANDS[self.operands]}, and {target.backend} gives {OPERANDS[target.operands]}"
        return super().declines(target, eqn)

    def ready(
        self, context: CallContext, outs: Sequence[ShapedArray], args: Sequence[ShapedArray], params: dict[str, Any]
    ) -> Callable[..., None]:
        """The function of ``(outs, args)`` that launches call."""
        if self.prepare is not None:
            made = self.prepare(context, outs, args, params)
            if callable(made):
                return made
            raise PluginError(f"prepare of the lowering gave {made!r}, not a function of (outs, args)")
        run: Any = self.run
        return lambda outs, args: run(context, outs, args, **params)


Lowering = Kernels | Replace | Call

Family = Mapping[Primitive, LoweringKind | tuple[LoweringKind, ...]]
"""What backends of one kind share: a lowering of a primitive, or several, in the order in which they are asked."""

Grid = tuple[tuple[Axis, ...], tuple[Expr, ...]]
"""Axes, and their indices."""


@dataclass(frozen=True)
class CallContext:
    """What a library call may use besides its operands."""

    device: Device | None
    """None, where what a program means is worked out without one."""


@dataclass(frozen=True)
class Update:
    """A kernel with stores of its own; its loads and stores name values.

    ``updates``: which argument's memory the result takes over, or None: then the stores must cover the result.
    """

    grid: tuple[Axis, ...]
    stages: tuple[Stage, ...]
    updates: int | None = None
    ordered: bool = False


class Out:
    """The result that a kernel rule computes, at one point: ``i`` are the indices.

    ``grid(shape)`` gives the axes and the point of another grid, for ``Update``. Axes of folds are made by the rule.
    ``folded()``: the dimensions along which the result is folded, if nothing else is done with it.
    """

    __slots__ = ("axes", "dtype", "folded", "grid", "i", "shape", "slot", "which")

    def __init__(
        self,
        slot: int,
        aval: ShapedArray,
        grid: Callable[[tuple[int, ...]], Grid],
        which: int = 0,
        folded: Callable[[], Sequence[int]] = tuple,
    ) -> None:
        self.slot = slot
        self.shape = aval.shape
        self.dtype = aval.dtype
        self.axes, self.i = grid(aval.shape)
        self.grid = grid
        self.which = which
        self.folded = folded

    def load(self, *indices: Expr, mask: Expr | None = None, other: Expr | None = None) -> Expr:
        """Reads the result itself: for kernels that update it."""
        return load(self.slot, self.dtype, indices, mask, other)


class Read:
    """An argument of a kernel rule: ``x(*indices)`` is its element there; ``x.at(i)`` broadcasts."""

    __slots__ = ("dtype", "literal", "shape", "slot")

    def __init__(self, slot: int, aval: ShapedArray, literal: Any = None) -> None:
        self.slot = slot
        self.shape = aval.shape
        self.dtype = aval.dtype
        self.literal = literal

    def __call__(self, *indices: Expr, mask: Expr | None = None, other: Expr | None = None) -> Expr:
        if self.literal is not None:
            return const(self.literal, self.dtype)
        return load(self.slot, self.dtype, indices, mask, other)

    def at(self, i: tuple[Expr, ...]) -> Expr:
        """The element that meets the point ``i`` of a result: scalars meet all, dimensions of size 1 are stretched."""
        if not self.shape:
            return self()
        return self(*[const(0) if n == 1 else k for n, k in zip(self.shape, i, strict=True)])

    def index(self, *indices: Expr) -> Expr:
        """The element there, as an index."""
        return cast(self(*indices), np.dtype("int64"))


def why_no_dtype(avals: Sequence[ShapedArray], limits: Limits) -> str | None:
    """The first dtype that kernels of the device can't handle."""
    for aval in avals:
        if aval.dtype not in limits.dtypes:
            return f"kernels here have no {aval.dtype}"
    return None
