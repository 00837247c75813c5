"""How checks go into functions with derivative rules of their own: the function is checked, its rules aren't."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.calls.custom_jvp import custom_jvp_call_p
from polyax.control.calls.custom_vjp import custom_vjp_call_p
from polyax.control.inner.lists import cut
from polyax.control.inner.programs import run
from polyax.experimental.checkify.error import Error
from polyax.experimental.checkify.failures import Errors
from polyax.experimental.checkify.interpreter import Checked, checked, rule_of
from polyax.ir.jaxpr import Eqn
from polyax.trace.symbolic import Zero
from polyax.trace.tree import tree_flatten, tree_leaves, tree_unflatten

Outcome = tuple[Error, Sequence[Any]]


@rule_of(custom_jvp_call_p)
def _custom_jvp(error: Error, enabled: Errors, eqn: Eqn, args: Sequence[Any]) -> Outcome:
    return _bound(error, enabled, eqn, args, "jvp", _UncheckedJVP)


@rule_of(custom_vjp_call_p)
def _custom_vjp(error: Error, enabled: Errors, eqn: Eqn, args: Sequence[Any]) -> Outcome:
    return _bound(error, enabled, eqn, args, "rules", _UncheckedVJP)


def _bound(
    error: Error, enabled: Errors, eqn: Eqn, args: Sequence[Any], name: str, kind: Callable[..., _Unchecked]
) -> Outcome:
    params = eqn.params
    made = checked(params["call_jaxpr"], enabled, error)
    leaves, num_consts = tree_leaves(error), params["num_consts"]

    def fun(*xs: Any) -> list[Any]:
        own, given, rest = cut(xs, num_consts, len(leaves))
        return run(made.program, [*given, *own, *rest])

    rule = kind(params[name], error, made)
    own, rest = cut(args, num_consts)
    changed = {"fun": fun, "call_jaxpr": None, name: rule}
    outs = eqn.primitive.bind_all(*own, *leaves, *rest, **params | changed)
    if rule.ran:
        leaves, outs = cut(outs, len(leaves))
        return tree_unflatten(tree_flatten(error)[1], leaves), outs
    rule.later = True
    return made.split(outs)


class _Unchecked:
    """A user's rule that hands errors on as they are; ``ran`` if it did so in place of the function. Run ``later``, for
    a program that the function was recorded in, it gives places for the errors of that too."""

    def __init__(self, rule: Any, error: Error, made: Checked) -> None:
        self.rule = rule
        self.owner = rule.owner
        self.ran = self.later = False
        leaves, self.tree = tree_flatten(error)
        self.size = len(leaves)
        self.made = made

    def handed_on(self, leaves: Sequence[Any]) -> list[Any]:
        self.ran = True
        if not self.later:
            return list(leaves)
        program = self.made.program
        kinds = self.made.split(program.out_avals)[0]._pred
        return tree_leaves(tree_unflatten(self.tree, leaves)._with_room(kinds))


class _UncheckedJVP(_Unchecked):
    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        leaves, xs = cut(primals, self.size)
        outs, dots = self.rule(xs, tangents[self.size :])
        handed = self.handed_on(leaves)
        return [*handed, *outs], [*map(Zero.of, handed), *dots]


class _UncheckedVJP(_Unchecked):
    def forward(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], Any]:
        leaves, xs = cut(primals, self.size)
        outs, residuals, backward = self.rule.forward(xs, perturbed[self.size :])
        handed = self.handed_on(leaves)
        zeros = [Zero.of(x) for x in leaves]

        def padded(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            return [*zeros, *backward(residuals, cts[len(handed) :])]

        return [*handed, *outs], residuals, padded
