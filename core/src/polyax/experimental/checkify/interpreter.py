"""The interpreter that runs a program together with its checks: an error travels along, from equation to equation.

Knows rules by primitive, and no primitive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polyax.control.inner.lists import cut
from polyax.control.inner.programs import derived
from polyax.experimental.checkify.automatic import FINDS
from polyax.experimental.checkify.error import Error, varied
from polyax.experimental.checkify.failures import Errors
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, last_uses
from polyax.ir.primitive import Primitive, ambient
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten
from polyax.transforms.memo import memoize_by_jaxpr

Rule = Callable[[Error, Errors, Eqn, Sequence[Any]], tuple[Error, Sequence[Any]]]
"""``(error, enabled, equation, operands) -> (error, results)``."""

RULES: dict[Primitive, Rule] = {}
"""Of primitives that hold programs, or checks."""


def rule_of(*primitives: Primitive) -> Callable[[Rule], Rule]:
    """Decorator: registers the rule of primitives."""

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(primitives, rule))
        return rule

    return register


def run_checked(
    jaxpr: Jaxpr, consts: Sequence[Any], enabled: Errors, error: Error, args: Sequence[Any]
) -> tuple[Error, list[Any]]:
    """The results of a program, and the error that it met, or else ``error``."""
    before = ambient.source
    try:
        return _run(jaxpr, consts, enabled, error, args)
    finally:
        ambient.source = before


def _run(
    jaxpr: Jaxpr, consts: Sequence[Any], enabled: Errors, error: Error, args: Sequence[Any]
) -> tuple[Error, list[Any]]:
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
    last = last_uses(jaxpr)
    caller = ambient.source

    def read(atom: Any) -> Any:
        return atom.value if isinstance(atom, Literal) else env[atom]

    for i, eqn in enumerate(jaxpr.eqns):
        ambient.source = eqn.source or caller
        error, outs = _step(eqn, list(map(read, eqn.invars)), enabled, error)
        env.update(zip(eqn.outvars, outs, strict=True))
        for var in last.get(i, ()):
            del env[var]
    return error, list(map(read, jaxpr.outvars))


def _step(eqn: Eqn, args: list[Any], enabled: Errors, error: Error) -> tuple[Error, Sequence[Any]]:
    rule = RULES.get(eqn.primitive)
    if rule is not None:
        return rule(error._single(), enabled, eqn, args)
    outs = eqn.apply(args)
    for needs, find in FINDS.get(eqn.primitive, ()):
        if needs <= enabled and (found := find(eqn, args, outs)) is not None:
            error = error._single()._with(*found)
    return error, outs


@dataclass(frozen=True)
class Checked:
    """A program that takes the leaves of an error before its operands, and gives those of another before its results:
    ``tree`` is the structure of that."""

    program: ClosedJaxpr
    tree: PyTreeDef

    @property
    def size(self) -> int:
        return self.tree.num_leaves

    def split(self, outs: Sequence[Any]) -> tuple[Error, list[Any]]:
        """Its results: the error and the rest."""
        leaves, rest = cut(outs, self.size)
        return tree_unflatten(self.tree, leaves), rest


def checked(program: ClosedJaxpr, enabled: Errors, error: Error) -> Checked:
    """``program`` with its checks, which takes errors like ``error``."""
    leaves, tree = tree_flatten(error)
    return _checked(program, enabled, tree, tuple(map(aval_of, leaves)))


@memoize_by_jaxpr
def _checked(program: ClosedJaxpr, enabled: Errors, tree: PyTreeDef, avals: tuple[ShapedArray, ...]) -> Checked:
    found: list[PyTreeDef] = []

    def fun(*args: Any) -> list[Any]:
        leaves, inputs = cut(args, len(avals))
        error, outs = run_checked(
            program.jaxpr, program.consts, enabled, tree_unflatten(tree, list(map(varied, leaves))), inputs
        )
        leaves, out_tree = tree_flatten(error)
        found.append(out_tree)
        return [*leaves, *outs]

    made = derived(program, fun, [*avals, *program.in_avals])
    return Checked(made, found[-1])
