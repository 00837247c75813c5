"""Values of expressions while loops are open: each is emitted once in its scope, folds over common axes in one loop.

Knows expressions and the emitter; of stages, stores and schedules nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Sequence
from typing import Any, Generic, TypeVar

from polyax.ir.errors import PluginError
from polyax_kernels.emit.emitter import Emitter
from polyax_kernels.ir.dependences import Facts, Levels, bodies, inits
from polyax_kernels.ir.expr import BOOL, INT, PICKS, Axis, Expr

T = TypeVar("T")


class Evaluator(Generic[T]):
    """``known`` holds the values of the expressions of all open scopes, in the order in which they were emitted."""

    def __init__(self, facts: Facts, emitter: Emitter[T]) -> None:
        self.facts = facts
        self.emitter = emitter
        self.known: dict[Expr, T] = {}
        self.indices: dict[Axis, T] = {}
        self.shared = False
        """Whether the code at hand is reached by all threads of a group that may share a point of the grid."""

    def close(self, size: int) -> None:
        """Leaves a scope: values emitted inside it are known no more."""
        while len(self.known) > size:
            self.known.popitem()

    def forget(self, written: int) -> None:
        """Values read from memory that a stage wrote are known no more."""
        for x in [x for x in self.known if self.facts.reads[x] & written]:
            del self.known[x]

    @contextlib.contextmanager
    def sharing(self, shared: bool) -> Generator[None]:
        """Says of the code inside whether all threads of a group reach it."""
        before, self.shared = self.shared, shared
        yield
        self.shared = before

    def extent(self, axis: Axis) -> T:
        if not isinstance(axis.extent, Expr):
            return self.given(self.emitter.const(axis.extent, INT), "const")
        self.evaluate(self.facts.needed([axis.extent]))
        return self.known[axis.extent]

    def near(self, axis: Axis) -> bool:
        """Whether neighbours along ``axis`` are next to each other in memory, or the same; False: unknown."""
        return False

    def evaluate(self, nodes: Iterable[Expr]) -> None:
        """Emits what isn't known yet; ``nodes`` come with operands first."""
        for group in self.rounds([x for x in nodes if x not in self.known]):
            if group[0].kind == "fold":
                self.fold(group)
            else:
                for x in group:
                    self.known[x] = self.given(self.value(x), x.kind)

    def given(self, value: T | None, method: str) -> T:
        """What the emitter gave for a value; PluginError, if that is nothing."""
        if value is None:
            name = f"{type(self.emitter).__name__}.{method}"
            raise PluginError(f"{name} gave None, not a value of its language: it returns what stands for the value")
        return value

    def rounds(self, nodes: Sequence[Expr]) -> list[list[Expr]]:
        """Groups to be evaluated one after the other; folds over the same axes are one, unless they need each other."""
        rank: dict[Expr, int] = {}
        groups: dict[tuple[Any, ...], list[Expr]] = {}
        for x in nodes:
            fold = x.kind == "fold"
            rank[x] = max((rank.get(a, 0) for a in self.facts.operands(x)), default=0) + fold
            loops = (x.attr.axes, x.attr.combine in PICKS) if fold else None
            groups.setdefault((rank[x], not fold, loops), []).append(x)
        return [groups[key] for key in sorted(groups, key=lambda key: key[:2])]

    def value(self, x: Expr) -> T:
        args = [self.known[a] for a in x.args]
        emitter = self.emitter
        match x.kind:
            case "op":
                return emitter.op(x.attr, x.args[-1].dtype, *args)
            case "load":
                return emitter.load(x.attr.slot, args[0], x.dtype, *args[1:])
            case "index":
                return self.indices[x.attr]
            case "const":
                return emitter.const(x.attr, x.dtype)
            case "cast":
                return emitter.cast(args[0], x.args[0].dtype, x.dtype)
            case "bitcast":
                return emitter.bitcast(args[0], x.args[0].dtype, x.dtype)
            case _:
                return emitter.param(x.attr, x.dtype)

    # --- folds ---

    def fold(self, group: Sequence[Expr]) -> None:
        """Emits the loops that the folds of ``group`` share; carries of one fold are told apart by ``which`` alone."""
        folds = list({(x.attr.combine, x.args): x for x in group}.values())
        start = [self.known[a] for x in folds for a in inits(x)]
        carries = iter(self.fold_axis(folds, 0, start, self.facts.inside(folds)))
        results = {(x.attr.combine, x.args): [next(carries) for _ in bodies(x)] for x in folds}
        for x in group:
            self.known[x] = results[x.attr.combine, x.args][x.attr.which]

    def fold_axis(self, folds: Sequence[Expr], depth: int, carries: Sequence[T], nodes: Levels) -> Sequence[T]:
        """The loops over the axes from number ``depth`` on, or, inside all of them, one combination."""
        self.evaluate(y for y, n in nodes if n == depth)
        axes = folds[0].attr.axes
        if depth == len(axes):
            remaining = iter(carries)
            return [c for x in folds for c in self.combine(x, [next(remaining) for _ in bodies(x)])]

        def body(i: T, inner: Sequence[T]) -> Sequence[T]:
            scope = len(self.known)
            self.indices[axes[depth]] = i
            result = self.fold_axis(folds, depth + 1, inner, nodes)
            self.close(scope)
            return result

        ordered = folds[0].attr.combine in PICKS
        combines = [x.attr.combine for x in folds] if depth == len(axes) - 1 and not ordered else []
        dtypes = [b.dtype for x in folds for b in bodies(x)]
        stop = self.extent(axes[depth])
        simple = combines and not any(x.kind == "fold" and n == depth + 1 for x, n in nodes)
        words = ["group"] * bool(self.shared and combines) + ["near"] * bool(simple and self.near(axes[depth]))
        hint = " ".join(words)
        with self.sharing(self.shared and not combines):
            made: Any = self.emitter.fold(stop, carries, dtypes, body, combines=combines, hint=hint)
        if not isinstance(made, Sequence) or len(made) != len(carries):
            name = f"{type(self.emitter).__name__}.fold"
            raise PluginError(f"{name} gave {made!r}, not the {len(carries)} values that it carries to its end")
        return made

    def combine(self, x: Expr, carries: Sequence[T]) -> list[T]:
        values = [self.known[b] for b in bodies(x)]
        if x.attr.combine in PICKS:
            return self.pick(x, carries, values)
        return [self.emitter.op(x.attr.combine, x.dtype, carries[0], values[0])]

    def pick(self, x: Expr, carries: Sequence[T], values: Sequence[T]) -> list[T]:
        """The better of two (value, index) pairs; the first of equal ones, and NaN before all."""
        op, dtype = self.emitter.op, bodies(x)[0].dtype
        best, value = carries[0], values[0]
        better = op("gt" if x.attr.combine == "argmax" else "lt", dtype, value, best)
        if dtype.kind == "f":
            ordered, new_nan = op("eq", dtype, best, best), op("ne", dtype, value, value)
            better = op("and", BOOL, ordered, op("or", BOOL, better, new_nan))
        return [op("select", b.dtype, better, v, c) for b, c, v in zip(bodies(x), carries, values, strict=True)]
