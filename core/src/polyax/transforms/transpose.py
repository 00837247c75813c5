"""Transposition: linear programs run backwards, from cotangents of outputs to cotangents of inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.ir.aval import aval_of
from polyax.ir.config import config
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from polyax.ir.primitive import ambient
from polyax.ir.source import Source
from polyax.meshes.consensus import lenient
from polyax.meshes.explicit import cotangent_type
from polyax.ops.resharding import retyped
from polyax.ops.varying import varying_as
from polyax.ops.zeros import add_tangents, instantiate
from polyax.trace.recording import trace_to_jaxpr
from polyax.trace.symbolic import UndefPrimal, Zero
from polyax.transforms.memo import memoize_by_jaxpr


def backward_pass(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    args: Sequence[Any],
    cts: Sequence[Any],
    refs: dict[Var, Any] | None = None,
) -> list[Any]:
    """Cotangents of the inputs that are ``UndefPrimal`` in ``args``; None for the others.

    Equations that depend on no linear input are evaluated first. ``cts`` may hold ``Zero``; ``refs`` are the references
    to which cotangents of references among the inputs are added, and those of parts of arrays among them.
    """
    before = ambient.source
    try:
        with lenient():
            return _backward_pass(jaxpr, consts, args, cts, {} if refs is None else refs)
    finally:
        ambient.source = before


def _backward_pass(
    jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], cts: Sequence[Any], refs: dict[Var, Any]
) -> list[Any]:
    caller = ambient.source
    env, linear_eqns = _evaluate_nonlinear(jaxpr, consts, args)
    cotangents: dict[Var, Any] = {}

    def accumulate(atom: Atom, ct: Any, typed: bool = True) -> None:
        if ct is None or type(ct) is Zero or isinstance(atom, Literal) or atom in env:
            return
        if config.checks:
            _check_cotangent(atom, ct, typed)
        if ambient.varying:
            ct = varying_as(ct, atom.aval.vma)
        ct = retyped(ct, cotangent_type(atom.aval))
        before = cotangents.get(atom)
        cotangents[atom] = ct if before is None else add_tangents(before, ct)

    for atom, ct in zip(jaxpr.outvars, cts, strict=True):
        accumulate(atom, ct, typed=False)
    for eqn in reversed(linear_eqns):
        given = [cotangents.pop(v, None) for v in eqn.outvars]
        if eqn.primitive.backward is not None and (eqn.primitive.takes_refs or not refs.keys().isdisjoint(eqn.invars)):
            ambient.source = _backwards(eqn, caller)
            _accumulate_refs(refs, given, eqn, [_primal(env, a) for a in eqn.invars], accumulate)
            continue
        if all(ct is None for ct in given):
            continue
        given = [Zero(cotangent_type(v.aval)) if ct is None else ct for v, ct in zip(eqn.outvars, given, strict=True)]
        primals = [_primal(env, a) for a in eqn.invars]
        ambient.source = _backwards(eqn, caller)
        results = eqn.primitive.rule("transpose")(given, *primals, **eqn.params)
        typed = config.checks and not eqn.primitive.only_transposed and all(map(_has_dtype, eqn.outvars, given))
        for atom, ct in zip(eqn.invars, results, strict=True):
            accumulate(atom, ct, typed)
    return [
        cotangents.get(v, Zero(cotangent_type(v.aval))) if type(a) is UndefPrimal else None
        for v, a in zip(jaxpr.invars, args, strict=True)
    ]


def _backwards(eqn: Eqn, caller: Source | None) -> Source | None:
    """Where the equations of a backward pass come from that ``eqn`` leads to."""
    return eqn.source.transposed(ambient.scope) if eqn.source else caller


def _accumulate_refs(
    refs: dict[Var, Any],
    given: Sequence[Any],
    eqn: Eqn,
    primals: Sequence[Any],
    accumulate: Callable[[Atom, Any], None],
) -> None:
    """What an equation on references does backwards, where these stand for the cotangents of what they hold."""
    for atom, ct in zip(eqn.invars, eqn.primitive.rule("backward")(refs, given, eqn, primals), strict=True):
        accumulate(atom, ct)


def _primal(env: dict[Var, Any], atom: Atom) -> Any:
    if isinstance(atom, Literal):
        return atom.value
    return env[atom] if atom in env else UndefPrimal(atom.aval)


def _evaluate_nonlinear(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> tuple[dict[Var, Any], list[Eqn]]:
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update((v, a) for v, a in zip(jaxpr.invars, args, strict=True) if type(a) is not UndefPrimal)
    linear: list[Eqn] = []
    caller = ambient.source
    for eqn in jaxpr.eqns:
        ambient.source = eqn.source or caller
        is_known = all(isinstance(a, Literal) or a in env for a in eqn.invars)
        if is_known and not (eqn.primitive.makes_refs or eqn.primitive.only_transposed):
            outs = eqn.apply([_primal(env, a) for a in eqn.invars])
            env.update(zip(eqn.outvars, outs, strict=True))
        else:
            linear.append(eqn)
    return env, linear


def _has_dtype(var: Var, ct: Any) -> bool:
    return type(ct) is Zero or aval_of(ct).dtype == var.aval.dtype


def _check_cotangent(var: Var, ct: Any, typed: bool) -> None:
    """Users' rules give cotangents of any dtype, and what is made of these isn't ``typed``."""
    got = aval_of(ct)
    if got.shape != var.aval.shape or (typed and got.dtype != var.aval.dtype):
        raise AssertionError(f"a transpose rule gave the cotangent {got} for a value of type {var.aval}")


@memoize_by_jaxpr
def transpose_jaxpr(
    jaxpr: ClosedJaxpr, linear: tuple[bool, ...], nonzero_cts: tuple[bool, ...], force: tuple[bool, ...] | None = None
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The program from nonlinear inputs and nonzero cotangents to nonzero cotangents of the linear inputs.

    Also gives which of the linear inputs get a nonzero cotangent; those for which ``force`` holds always do.
    """
    nonzero_out: list[bool] = []
    in_avals, out_avals = jaxpr.in_avals, jaxpr.out_avals

    def fun(*args: Any) -> list[Any]:
        given = iter(args)
        primals = [UndefPrimal(a) if lin else next(given) for lin, a in zip(linear, in_avals, strict=True)]
        cts = [next(given) if nz else Zero(cotangent_type(a)) for nz, a in zip(nonzero_cts, out_avals, strict=True)]
        results = backward_pass(jaxpr.jaxpr, jaxpr.consts, primals, cts)
        wanted = [ct for ct, lin in zip(results, linear, strict=True) if lin]
        if force is not None:
            wanted = [instantiate(ct) if f else ct for ct, f in zip(wanted, force, strict=True)]
        nonzero_out.extend(type(ct) is not Zero for ct in wanted)
        return [ct for ct in wanted if type(ct) is not Zero]

    avals = [a for a, lin in zip(in_avals, linear, strict=True) if not lin]
    avals += [cotangent_type(a) for a, nz in zip(out_avals, nonzero_cts, strict=True) if nz]
    return trace_to_jaxpr(fun, avals, name=jaxpr.jaxpr.debug_name), tuple(nonzero_out)
