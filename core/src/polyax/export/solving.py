"""From the shapes of a call's arguments to the values of dimension variables, and whether all that was said holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from polyax.export.dims import DimExpr, Term, UnexpectedDimVar, evaluated, expression
from polyax.ir.aval import ShapedArray
from polyax.ir.errors import InconclusiveDimensionOperation
from polyax.trace.paths import keystr, tree_leaves_with_path
from polyax.trace.tree import PyTreeDef, tree_unflatten

SEE = " See polyax.export.symbolic_shape for what shapes can be."


class Given(NamedTuple):
    """A symbolic dimension of an argument, and its size in the call."""

    expr: DimExpr
    where: str
    size: Any


def argument_names(in_tree: PyTreeDef) -> list[str]:
    """``args[0]['w']`` and so on, for each leaf."""
    whole = tree_unflatten(in_tree, [0] * in_tree.num_leaves)
    return [f"{('args', 'kwargs')[path[0].idx]}{keystr(path[1:])}" for path, _ in tree_leaves_with_path(whole)]


def check_types(expected: Sequence[ShapedArray], found: Sequence[ShapedArray], in_tree: PyTreeDef) -> None:
    """Raises ValueError unless arguments have the ranks, dtypes and constant dimensions that they need."""
    for name, e, f in zip(argument_names(in_tree), expected, found, strict=True):
        if e.ndim != f.ndim:
            raise ValueError(f"Rank mismatch for {name}: expected {e.shape} and called with {f.shape}")
        if e.dtype != f.dtype:
            raise ValueError(f"Dtype mismatch for {name}: expected {e.dtype} and called with {f.dtype}")
        for n, (wanted, size) in enumerate(zip(e.shape, f.shape, strict=True)):
            if not isinstance(wanted, DimExpr) and wanted != size:
                raise ValueError(
                    f"Shape mismatch for {name}.shape[{n}] (expected same constant): "
                    f"expected {e.shape} and called with {f.shape}"
                )


class Solution:
    """Values of variables, found one after the other in equations that are linear in one unknown.

    Raises:
      ValueError: there is none, or not one that can be found so; the text says of which dimensions.
    """

    def __init__(self, expected: Sequence[ShapedArray], found: Sequence[ShapedArray], in_tree: PyTreeDef) -> None:
        self.env: dict[str, Any] = {}
        self.how: list[str] = []
        self.specs: list[str] = []
        waiting = self._equations(expected, found, in_tree)
        scope = waiting[0].expr.scope if waiting else None
        while waiting:
            left = [given for given in waiting if not self._solved(given)]
            if len(left) == len(waiting):
                raise self._unsolvable(left)
            waiting = left
        if scope is not None:
            self._check_constraints(scope)

    def _equations(self, expected: Any, found: Any, in_tree: PyTreeDef) -> list[Given]:
        given: list[Given] = []
        for name, e, f in zip(argument_names(in_tree), expected, found, strict=True):
            symbolic = [n for n, d in enumerate(e.shape) if isinstance(d, DimExpr)]
            if symbolic:
                self.specs.append(f"{name}.shape = {e.shape}")
            given += [Given(e.shape[n], f"{name}.shape[{n}]", f.shape[n]) for n in symbolic]
        return given

    def _solved(self, given: Given) -> bool:
        """Whether the equation was of use: it gave a value, or was checked."""
        unknown: list[tuple[Term, int]] = []
        rest = given.size
        for t, k in given.expr.terms.items():
            try:
                rest = rest - k * evaluated(expression({t: 1}, given.expr.scope), self.env)
            except UnexpectedDimVar:
                unknown.append((t, k))
        if not unknown:
            self._check(given, rest)
            return True
        (t, k), *others = unknown
        name = t[0][0] if len(t) == 1 and t[0][1] == 1 else None
        if others or not isinstance(name, str):
            return False
        self._assign(name, k, rest, given)
        return True

    def _assign(self, name: str, k: int, total: Any, given: Given) -> None:
        value, remainder = divmod(total, k) if k != 1 else (total, 0)
        if not self._surely(lambda: remainder == 0):
            raise self._mismatch(f"Division had remainder {remainder} when computing the value of '{name}'.")
        self.how.append(
            f"'{name}' = {value} from specification '{given.expr}' for dimension {given.where} (= {given.size}), "
        )
        if not self._surely(lambda: value >= 1):
            raise self._mismatch(f"Expected value >= 1 for dimension variable '{name}'.")
        self.env[name] = value

    def _check(self, given: Given, rest: Any) -> None:
        if not self._surely(lambda: rest == 0):
            raise self._mismatch(
                f"Found inconsistency between dimension size {given.where} (= {given.size}) and the specification "
                f"'{given.expr}' (= {given.size - rest})."
            )

    def _check_constraints(self, scope: Any) -> None:
        for c in scope.constraints:
            value = evaluated(c.diff, self.env)
            holds = self._surely(lambda: value == 0 if c.equal else value >= 0)  # noqa: B023  # called at once
            if not holds:
                raise ValueError(
                    f"Input shapes do not match the symbolic shape constraint {c.text}. Expected '{c.diff}' to be "
                    f"{'equal' if c.equal else 'greater or equal'} to 0, but found {value}. {self._told()}"
                )

    def _surely(self, question: Any) -> bool:
        """Whether it can be told, and holds: sizes of calls inside of other exports are symbolic too."""
        try:
            return bool(question())
        except InconclusiveDimensionOperation:
            return False

    def _told(self) -> str:
        specs = f" Using the following polymorphic shapes specifications: {','.join(self.specs)}."
        return f"{specs} Obtained dimension variables: {''.join(self.how)}.{SEE}"

    def _mismatch(self, detail: str) -> ValueError:
        return ValueError(f"Input shapes do not match the polymorphic shapes specification. {detail}{self._told()}")

    def _unsolvable(self, left: Sequence[Given]) -> ValueError:
        unknown = set().union(*(g.expr.variables() for g in left)) - self.env.keys()
        specs = ", ".join(f"'{g.expr}' for dimension size {g.where}" for g in left)
        return ValueError(
            f"Cannot solve for values of dimension variables {unknown}. We can only solve linear uni-variate "
            f"constraints. Using the following polymorphic shapes specifications: {','.join(self.specs)}. "
            f"Unprocessed specifications: {specs}.{SEE}"
        )
