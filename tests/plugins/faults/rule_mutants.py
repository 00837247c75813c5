"""Lowerings with one fault each: those that all kernel backends share, with something in them got wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from kernels.numpy_backend import NumpyKernelBackend
from plugins.faults.expressions import SLIPS, UPDATES, everywhere, in_indices, in_values, slipped

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.ir.primitive import PRIMITIVES, Primitive
from polyax.runtime.contract.hooks import Offer
from polyax.trace.recording import trace_to_jaxpr
from polyax_kernels.ir.expr import Expr, cast, consing, const
from polyax_kernels.lower.fallback import on_host
from polyax_kernels.lower.lowering import Call, Kernels, Replace, Update
from polyax_kernels.lower.rules import SHARED

X = np.array([[0.3, -1.7, 2.2, 0.9], [1.4, 0.2, -0.6, 3.1], [-2.5, 1.1, 0.7, -0.4]], np.float32)
Y = np.array([[1.2, 0.8, -0.5, 2.0], [0.4, -1.1, 1.9, 0.6], [2.3, 0.5, -0.9, 1.3]], np.float32)
M = np.array([[5, -3, 12, 7], [2, 9, -8, 1], [6, -4, 3, 10]], np.int32)
N = np.array([[2, 1, 3, 2], [1, 2, 3, 1], [2, 1, 1, 3]], np.int32)

Program = Callable[..., Any]


@dataclass(frozen=True)
class RuleMutant:
    """A wrong lowering of ``primitive``, which the program ``case`` uses."""

    name: str
    primitive: Primitive
    rule: Any
    case: str


def start(x: Any) -> Any:
    """An index that isn't known before the program runs."""
    return (x[0, 0] > 0).astype(np.int32)


PROGRAMS: dict[str, tuple[Program, Sequence[np.ndarray]]] = {
    "sub": (lambda x, y: (x - y) * 2, (X, Y)),
    "mul": (lambda x, y: x * y, (X, Y)),
    "div": (lambda x, y: x / y, (M, N)),
    "rem": (lax.rem, (M, N)),
    "max": (jnp.maximum, (X, Y)),
    "pow": (lambda x, y: jnp.abs(x) ** y, (X, Y)),
    "atan2": (jnp.arctan2, (X, Y)),
    "sin": (jnp.sin, (X,)),
    "neg": (lambda x: -x, (X,)),
    "lt": (lambda x, y: x < y, (M, N)),
    "and": (lambda x, y: x & y, (M, N)),
    "shift_left": (lambda x, y: x << y, (M, N)),
    "select_n": (lambda x, y: jnp.where(x > 0, x, y), (X, Y)),
    "clamp": (lambda x, y: lax.clamp(np.float32(-0.5), x, np.float32(1)), (X, Y)),
    "integer_pow": (lambda x: x**3, (X,)),
    "convert_element_type": (lambda x: x.astype(np.int32), (X,)),
    "bitcast_convert_type": (lambda x: lax.bitcast_convert_type(x, np.int32), (X,)),
    "broadcast_in_dim": (lambda x: jnp.broadcast_to(x[0], (3, 4)) + x, (X,)),
    "transpose": (lambda x: x.T + 1, (X,)),
    "reshape": (lambda x: x.reshape(4, 3) * 2, (X,)),
    "rev": (lambda x: x[::-1] * 2, (X,)),
    "slice": (lambda x: lax.slice(x, (0, 1), (2, 3)) * 2, (X,)),
    "pad": (lambda x: jnp.pad(x, 1, constant_values=3.0), (X,)),
    "concatenate": (lambda x, y: jnp.concatenate([x, y], 1), (X, Y)),
    "iota": (lambda x: x + lax.broadcasted_iota(np.float32, (3, 4), 1), (X,)),
    "reduce_sum": (lambda x: x.sum(1), (X,)),
    "reduce_max": (lambda x: x.max(0), (X,)),
    "argmax": (lambda x: jnp.argmax(x, 1), (X,)),
    "cumsum": (lambda x: jnp.cumsum(x, 1), (X,)),
    "dot_general": (lambda x, y: x @ y.T, (X, Y)),
    "gather": (lambda x: x[jnp.array([2, 0])] * 2, (X,)),
    "scatter-add": (lambda x, y: x.at[jnp.array([1, 1])].add(y[:2]), (X, Y)),
    "dynamic_slice": (lambda x: lax.dynamic_slice(x, (start(x), start(x)), (2, 2)), (X,)),
    "dynamic_update_slice": (lambda x, y: lax.dynamic_update_slice(x, y[:2, :2], (start(x), start(x))), (X, Y)),
    "sort": (lambda x: (jnp.sort(x, 1), x), (X,)),
    "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(3)), (X,)),
}
LIBRARY = ("sort", "cholesky")
"""What runs by calls."""
KNOWN = {p.name: p for p in PRIMITIVES}


def rule_mutants() -> Iterator[RuleMutant]:
    """Each of some rules, with each slip that it allows."""
    for name, (program, args) in PROGRAMS.items():
        if name in LIBRARY:
            wrong = [(f"a call that {how}", Call(partial(run, KNOWN[name]))) for how, run in CALLS.items()]
        else:
            found: Any = SHARED[name]
            rules = [rule for rule in (found if isinstance(found, tuple) else (found,)) if isinstance(rule, Kernels)]
            wrong = [*changes(rules[0], KNOWN[name], program, args)]
        for how, changed in wrong:
            yield RuleMutant(f"{name}: {how}", KNOWN[name], changed, name)
    for how, made in REPLACEMENTS.items():
        yield RuleMutant(f"sub: a program {how}", KNOWN["sub"], Replace(made), "sub")


def changes(
    rule: Kernels, primitive: Primitive, program: Program, args: Sequence[np.ndarray]
) -> Iterator[tuple[str, Kernels]]:
    for how, change in effective(rule, primitive, program, args).items():
        yield how, replace(rule, build=lambda *a, f=change, **params: f(rule.build(*a, **params)))
    for how, order in READS.items():
        yield how, replace(rule, build=lambda out, *reads, f=order, **params: rule.build(out, *f(reads), **params))
    yield "an alias that it isn't", replace(rule, aliases=not rule.aliases)
    yield "a rule for each result", replace(rule, each=not rule.each)
    yield "the result's shape turned", replace(rule, build=partial(turned, rule.build))


Change = Callable[[Any], Any]
"""Of what a rule builds."""


def effective(rule: Kernels, primitive: Primitive, program: Program, args: Sequence[np.ndarray]) -> dict[str, Change]:
    """The changes that make something else of what the rule builds for the program, one of those that make the same."""
    every = {how: partial(on_updates, update) for how, update in UPDATES.items()}
    for how, slip in SLIPS.items():
        for first in (False, True):
            every[f"{how}, {'first' if first else 'last'}"] = partial(in_stores, partial(slipped, slip, first=first))
    kept = dict(RESULTS)
    met: list[Any] = []

    def build(*a: Any, **params: Any) -> Any:
        made = rule.build(*a, **params)
        for how, change in every.items():
            wrong = change(made)
            if wrong != made and wrong not in met:
                kept[how] = change
                met.append(wrong)
        return made

    class Probing(NumpyKernelBackend):
        __module__ = NumpyKernelBackend.__module__  # the folder of the tests isn't a backend's

        def lowerings(self) -> Any:
            return {primitive: [Offer("a probe", replace(rule, build=build))]}

    with consing():
        Probing(fused=False).graph(polyax.make_jaxpr(program)(*args))
    return kept


def on_updates(change: Change, made: Any) -> Any:
    return change(made) if isinstance(made, Update) else made


def in_stores(change: Callable[[Expr], Expr], made: Any) -> Any:
    if isinstance(made, Expr):
        return change(made)
    if isinstance(made, Update):
        both = lambda s: in_indices(change)(in_values(change)(s))
        return replace(made, stages=everywhere(both, made.stages))
    return type(made)(in_stores(change, x) for x in made)


def turned(build: Any, out: Any, *reads: Any, **params: Any) -> Any:
    out.i = out.i[::-1]
    return build(out, *reads, **params)


def valued(change: Callable[[Expr], Any]) -> Callable[[Any], Any]:
    """``change`` of an expression; what stores otherwise stays."""
    return lambda made: change(made) if isinstance(made, Expr) else made


RESULTS: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda made: None,
    "a number": lambda made: 3.0,
    "an array": lambda made: np.zeros((3, 4), np.float32),
    "a list": lambda made: [made],
    "no results": lambda made: (),
    "a result too many": lambda made: (made, made),
    "another dtype": valued(lambda x: cast(x, np.int8)),
    "a wider dtype": valued(lambda x: cast(x, np.float64)),
    "zeros": valued(lambda x: const(0, x.dtype)),
    "one more": valued(lambda x: x + 1 if x.dtype != bool else x < const(True, bool)),
    "kernels that store nothing": lambda made: Update((), (), None),
}
READS: dict[str, Callable[[Sequence[Any]], Sequence[Any]]] = {
    "operands in the other order": lambda reads: reads[::-1],
    "the first operand for all": lambda reads: [reads[0]] * len(reads) if reads else reads,
    "an operand less": lambda reads: reads[:-1],
    "an operand more": lambda reads: [*reads, *reads[-1:]],
}


# --- calls and programs -----------------------------------------------------------------------------------------------


def right(primitive: Primitive, ctx: Any, outs: Any, args: Any, params: Any) -> None:
    run: Any = on_host(primitive).run
    run(ctx, outs, args, **params)


def calling(after: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def run(primitive: Primitive, ctx: Any, outs: Any, args: Any, **params: Any) -> Any:
        right(primitive, ctx, outs, args, params)
        return after(outs, args)

    return run


def overwrite(array: np.ndarray, value: Any) -> None:
    array[...] = value


CALLS: dict[str, Callable[..., Any]] = {
    "does nothing": lambda primitive, ctx, outs, args, **_: overwrite(outs[0], 0),
    "raises": lambda primitive, ctx, outs, args, **_: args[7],
    "rolls its result": calling(lambda outs, args: overwrite(outs[0], np.roll(outs[0], 1))),
    "adds one": calling(lambda outs, args: overwrite(outs[0], outs[0] + 1)),
    "writes its operand": calling(lambda outs, args: overwrite(args[0], 0)),
    "gives another shape": lambda primitive, ctx, outs, args, **_: overwrite(outs[0], np.zeros((7, 7))),
    "takes no parameters": lambda primitive, ctx, outs, args: None,
    "takes other operands": lambda primitive, outs, args, **_: None,
}


def replacing(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda avals, **_: trace_to_jaxpr(function, avals)


REPLACEMENTS: dict[str, Callable[..., Any]] = {
    "of the other order": replacing(lambda x, y: [lax.add(lax.neg(x), y)]),
    "of the same equation": replacing(lambda x, y: [lax.sub(lax.neg(x), lax.neg(y))]),
    "without an operand": replacing(lambda x, y: [x]),
    "of one operand": lambda avals, **_: trace_to_jaxpr(lambda x: [x], avals[:1]),
    "of another dtype": replacing(lambda x, y: [lax.convert_element_type(lax.add(x, y), np.int32)]),
    "of another shape": replacing(lambda x, y: [lax.transpose(x, (1, 0))]),
    "with two results": replacing(lambda x, y: [x, y]),
    "with no results": replacing(lambda x, y: []),
    "that is none": lambda avals, **_: None,
    "that raises": lambda avals, **_: avals[7],
    "that takes no parameters": lambda: None,
    "that is itself": replacing(lambda x, y: [lax.sub(x, y)]),
    "with a constant": replacing(lambda x, y: [lax.add(lax.add(x, lax.neg(y)), np.float32(0.5))]),
}
