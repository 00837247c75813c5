"""How a primitive runs on a backend: the kinds of lowering, and the choice among those that plugins offer.

A backend's own rule comes first, then the rules that all kernel backends share, then the host. Knows no primitive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.errors import NoLowering
from polyax.ir.primitive import Primitive
from polyax_kernels.ir.expr import Axis, Expr, cast, const, load
from polyax_kernels.ir.kernel import Stage
from polyax_kernels.ir.limits import Limits

WhyNot = Callable[[Sequence[ShapedArray], Mapping[str, Any]], str | None]
"""``why_not(avals, params)``: the reason to decline a use of the primitive, or None; asked at compile time."""


def always(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Declines nothing."""
    return None


@dataclass(frozen=True)
class Kernels:
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


@dataclass(frozen=True)
class Call:
    """A library call: ``run(ctx, outs, args, **params)`` fills ``outs``.

    On host backends ``outs`` and ``args`` are NumPy arrays of the avals' shapes; elsewhere the backend's own views.
    ``ctx`` is a ``CallContext``.
    """

    run: Callable[..., None]
    why_not: WhyNot = always
    priority: int = 0


@dataclass(frozen=True)
class Prepared:
    """A call that is made ready once, with its executable: ``prepare(ctx, out_avals, arg_avals, params)`` gives the
    function of ``(outs, args)`` that launches run. For backends of devices with a queue of their own."""

    prepare: Callable[..., Callable[..., None]]
    why_not: WhyNot = always
    priority: int = 0


@dataclass(frozen=True)
class Native:
    """A library function that compiled plans call through its address, without Python.

    ``signature(arg_avals, out_avals, params)`` gives what to pass, in the backend's own terms; None if this use needs
    Python. ``run`` is the same as a ``Call``, for plans that are walked from Python.
    """

    symbol: Callable[..., Any] | str
    signature: Callable[..., Any]
    run: Callable[..., None]
    why_not: WhyNot = always
    priority: int = 0


@dataclass(frozen=True)
class Inline:
    """A program takes the equation's place: ``params[program]``, or ``program(**params)``; if it is ``typed``,
    ``program(avals, **params)``."""

    program: str | Callable[..., Any] = "jaxpr"
    apart: bool = False
    """What it computes is computed again even if an equal equation was met before."""
    typed: bool = False
    why_not: WhyNot = always
    priority: int = 0

    def of(self, avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> Any:
        if isinstance(self.program, str):
            return params[self.program]
        return self.program(avals, **params) if self.typed else self.program(**params)


Grid = tuple[tuple[Axis, ...], tuple[Expr, ...]]
"""Axes, and their indices."""

Lowering = Kernels | Call | Prepared | Native | Inline


@dataclass(frozen=True)
class CallContext:
    """What a library call may use besides its operands."""

    queue: Any
    device: Any


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
    """

    __slots__ = ("axes", "dtype", "grid", "i", "shape", "slot", "which")

    def __init__(self, slot: int, aval: ShapedArray, grid: Callable[[tuple[int, ...]], Grid], which: int = 0) -> None:
        self.slot = slot
        self.shape = aval.shape
        self.dtype = aval.dtype
        self.axes, self.i = grid(aval.shape)
        self.grid = grid
        self.which = which

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


class Rules:
    """The choice of a lowering for each use of a primitive; asks in order and remembers the reasons."""

    def __init__(
        self,
        backend: str,
        limits: Limits,
        own: Mapping[Primitive, Lowering],
        shared: Mapping[str, Lowering | tuple[Lowering, ...]],
        host: Callable[[Primitive], Lowering | str],
        family: Mapping[Primitive, Lowering] | None = None,
    ) -> None:
        """``family``: what backends of one kind share, asked before what all share. Of several shared rules of one
        primitive the first that doesn't decline is used."""
        self.backend = backend
        self.limits = limits
        self.own = own
        self.family = family or {}
        self.shared = shared
        self.host = host

    def choose(
        self,
        primitive: Primitive,
        avals: Sequence[ShapedArray],
        outs: Sequence[ShapedArray],
        params: Mapping[str, Any],
    ) -> Lowering:
        """The lowering to use.

        Raises:
          NoLowering: every place declined; the text holds their reasons.
        """
        reasons: list[str] = []
        for place, rule in (
            (f"the plugins of {self.backend}", self.own.get(primitive)),
            ("the rules of devices like it", self.family.get(primitive)),
            *(("the shared kernel rules", rule) for rule in self._shared(primitive)),
        ):
            reason = "no rule" if rule is None else self._why_not(rule, avals, outs, params)
            if rule is not None and reason is None:
                return rule
            reasons.append(f"{place}: {reason}")
        rule_or_reason = self.host(primitive)
        if not isinstance(rule_or_reason, str):
            return rule_or_reason
        reasons.append(f"the host: {rule_or_reason}")
        operands = ", ".join(map(str, avals))
        raise NoLowering(
            f"'{primitive.name}' on ({operands}) can't run on {self.backend}. Looked at "
            + "; ".join(reasons)
            + f".{primitive.remedy}"
        )

    def _shared(self, primitive: Primitive) -> tuple[Lowering | None, ...]:
        found = self.shared.get(primitive.name)
        return found if isinstance(found, tuple) else (found,)

    def _why_not(
        self, rule: Lowering, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: Mapping[str, Any]
    ) -> str | None:
        if isinstance(rule, Kernels):
            reason = why_no_dtype(avals, self.limits) or why_no_dtype(outs, self.limits)
            if reason is not None:
                return reason
        return None if rule.why_not is always else rule.why_not(avals, params)
