"""From programs with references to programs without: what a reference holds becomes a value that is handed on.

So no backend and no pass below knows of references. Loops carry what their bodies write to; branches give it back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polyax.control.inner.lists import Mask, either
from polyax.control.inner.programs import derived, with_programs
from polyax.control.refs.primitives import get_p, refuse_other, swap_p
from polyax.control.refs.ref import Cell, Ref
from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr, Eqn, Literal
from polyax.ir.primitive import Primitive, ambient
from polyax.ir.refs import AbstractRef, has_refs, holds_refs, is_ref
from polyax.transforms.memo import memoize_by_jaxpr


@dataclass(frozen=True)
class Discharged:
    """``program`` takes what references hold in their place, and gives after its results what those hold afterwards
    that are ``written`` to."""

    program: ClosedJaxpr
    written: Mask

    @property
    def num_written(self) -> int:
        return sum(self.written)


def inner_type(aval: ShapedArray) -> ShapedArray:
    """The type of what a reference holds; other types as they are."""
    return aval.inner_aval if isinstance(aval, AbstractRef) else aval


@memoize_by_jaxpr
def discharged(program: ClosedJaxpr, force: Mask = ()) -> Discharged:
    """The program without references. It has no references among its constants.

    Args:
      force: inputs that count as written to, whether they are or not.
    """
    written: list[bool] = []
    avals = program.in_avals

    def fun(*args: Any) -> list[Any]:
        given = [Cell(a, x) if isinstance(a, AbstractRef) else x for a, x in zip(avals, args, strict=True)]
        outs = run_discharged(program, given)
        written[:] = [is_ref(g) and g._refs is not x for g, x in zip(given, args, strict=True)]
        if force:
            written[:] = either(written, force)
        return [*outs, *(g._refs for g, w in zip(given, written, strict=True) if w)]

    made = derived(program, fun, [*map(inner_type, avals)])
    return Discharged(made, tuple(written))


def without_refs(program: ClosedJaxpr) -> ClosedJaxpr:
    """A program whose inputs are no references, without those inside."""
    return discharged(program).program if has_refs(program) else program


def run_discharged(program: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Applies the equations in the current trace; references are cells, which change as they would."""
    before = ambient.source
    env: dict[Any, Any] = dict(zip(program.jaxpr.constvars, program.consts, strict=True))
    env.update(zip(program.jaxpr.invars, args, strict=True))

    def value(atom: Any) -> Any:
        return atom.value if isinstance(atom, Literal) else env[atom]

    try:
        for eqn in program.jaxpr.eqns:
            ambient.source = eqn.source or before
            env.update(zip(eqn.outvars, _run(eqn, [*map(value, eqn.invars)]), strict=True))
        return [*map(value, program.jaxpr.outvars)]
    finally:
        ambient.source = before


def _run(eqn: Eqn, args: list[Any]) -> list[Any]:
    p = eqn.primitive
    if p.makes_refs:
        (ref,) = p.rule("impl")(*args, **eqn.params)
        return [Cell(ref.aval, ref._refs)]
    if p.higher_order and (any(map(is_ref, args)) or holds_refs(p, eqn.params)):
        return p.rule("discharge")(*args, **eqn.params)
    if p.higher_order:  # functions with rules of their own keep them
        return with_programs(eqn, without_refs).apply(args)
    return p.rule("impl")(*args, **eqn.params) if p.takes_refs else eqn.apply(args)


# --- what rules of primitives that hold programs are made of --------------------------------------------------------


def whole(x: Any) -> Any:
    """What a reference holds; other values as they are."""
    if not is_ref(x):
        return x
    if type(x) is not Cell:
        return get_p.bind1(x, indices=())
    refuse_other("get", x)
    return x._refs


def put(ref: Any, x: Any) -> None:
    """Writes all of what a reference holds."""
    if type(ref) is Cell:
        ref.hold(x)
    elif type(ref) is Ref and ambient.trace is None:
        ref.take(x)
    else:
        swap_p.bind_all(ref, x, indices=())


def put_written(args: Sequence[Any], written: Sequence[bool], news: Sequence[Any]) -> None:
    """Writes to those of ``args`` that are written to."""
    for ref, x in zip([a for a, w in zip(args, written, strict=True) if w], news, strict=True):
        put(ref, x)


def of_programs(p: Primitive) -> Callable[..., list[Any]]:
    """The rule of primitives whose programs may use references inside, but get none."""

    def discharge(*args: Any, **params: Any) -> list[Any]:
        if any(map(is_ref, args)):
            ref = next(x for x in args if is_ref(x))
            raise NotImplementedError(
                f"{p} can't take a reference, nor close over one: it got one of type {ref.aval}. Read it before, as in "
                "`ref[...]`, and write what it gives afterwards."
            )
        eqn = Eqn(p, [], [], params)
        return p.bind_all(*args, **with_programs(eqn, without_refs).params)

    return discharge


def add_rules(primitives: Sequence[Primitive]) -> None:
    """Gives that rule to those that hold programs and have none."""
    for p in primitives:
        if p.sub_jaxprs is not None and p.discharge is None:
            p.discharge = of_programs(p)
