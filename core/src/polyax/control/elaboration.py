"""Elaboration: programs whose values have extended dtypes become programs on their representations.

It happens in one place, where a program is cut or compiled; neither the partitioner nor any device knows of keys. To
its words, a key is what an example is to a batch along the last dimension: what primitives that move keys about do to
words, their rules for batches say. The generators' own primitives say it themselves (``ops.keys``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.callback import CALLBACKS
from polyax.control.folds.reduce import reduce_p
from polyax.control.folds.reduce_window import reduce_window_p
from polyax.control.inner.programs import with_programs
from polyax.control.inner.stand_ins import StandIns
from polyax.control.inspection import inspect_sharding_p
from polyax.control.spmd import shard_map_p
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray
from polyax.ir.errors import InternalError
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var, sub_jaxprs
from polyax.ir.primitive import Primitive, ambient
from polyax.ops.basis import random_wrap_p
from polyax.ops.compare import eq_p, ne_p
from polyax.ops.keys import ON_WORDS, random_unwrap_p
from polyax.ops.reduce import reduce_and, reduce_or
from polyax.trace.recording import trace_to_jaxpr
from polyax.transforms.memo import memoize_by_jaxpr
from polyax.transforms.vmap import AxisData, batch_flat, match_axis

_MOVING = (
    "all_gather all_to_all broadcast_in_dim concatenate copy dynamic_slice dynamic_update_slice eq gather name ne "
    "optimization_barrier pad ppermute pvary reshape reshard rev scatter select_n sharding_constraint slice sort split "
    "squeeze transpose"
)
MOVING = frozenset(_MOVING.split())
"""Names of primitives that care for no more than where elements are."""

_FOLDS = (reduce_p, reduce_window_p)
_REDUCED: dict[Primitive, Callable[..., Any]] = {eq_p: reduce_and, ne_p: reduce_or}
"""Keys are equal if all of their words are."""


@memoize_by_jaxpr
def elaborated(program: ClosedJaxpr) -> ClosedJaxpr:
    """``program`` on representations, with as many inputs, constants and results; itself, if no dtype is extended."""
    return _Elaboration().of(program)


def sealed(program: ClosedJaxpr, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> ClosedJaxpr:
    """``program``, on representations, as one whose inputs and results have the dtypes of ``ins`` and ``outs``."""
    jaxpr = program.jaxpr
    eqns, invars = [*jaxpr.eqns], [*jaxpr.invars]
    results: list[Atom] = [*jaxpr.outvars]
    for n, (v, aval) in enumerate(zip(jaxpr.invars, ins, strict=True)):
        if dtypes.is_extended(aval.dtype):
            invars[n] = Var(ShapedArray(v.aval.shape[:-1], aval.dtype))
            eqns.insert(0, Eqn(random_unwrap_p, [invars[n]], [v], {}))
    for n, (v, aval) in enumerate(zip(jaxpr.outvars, outs, strict=True)):
        if dtypes.is_extended(aval.dtype):
            results[n] = keys = Var(ShapedArray(v.aval.shape[:-1], aval.dtype))
            eqns.append(Eqn(random_wrap_p, [v], [keys], {"impl": aval.dtype.impl}))
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, invars, results, eqns, jaxpr.effects, jaxpr.debug_name), program.consts)


def _opaque(atom: Atom) -> bool:
    return dtypes.is_extended(atom.aval.dtype)


class _Elaboration(StandIns):
    """Representations stand for values of extended types."""

    def concerns(self, atom: Atom) -> bool:
        return _opaque(atom)

    def type_of(self, aval: ShapedArray) -> ShapedArray:
        return aval.physical

    def put(self, eqn: Eqn) -> bool:
        if sub_jaxprs(eqn):
            return self._put_calling(eqn)
        if not any(map(_opaque, (*eqn.invars, *eqn.outvars))):
            return self.append(eqn) is eqn
        avals = [a.aval.physical.update(vma=frozenset(), sharding=None) for a in eqn.invars]
        made = trace_to_jaxpr(lambda *args: _on_words(eqn, args), avals, name=eqn.primitive.name)
        if made.consts:
            raise InternalError(f"{eqn.primitive} on words has constants: {made}")
        self.put_program(eqn, made, [self.read(a) for a in eqn.invars])
        return False

    def _put_calling(self, eqn: Eqn) -> bool:
        """An equation whose programs do the work."""
        if eqn.primitive in _FOLDS and any(map(_opaque, eqn.invars)):
            raise TypeError(_refusal(eqn))
        inner = with_programs(eqn, elaborated)
        if eqn.primitive is shard_map_p and inner is not eqn:
            inner = inner.replace(params=inner.params | _longer_specs(eqn))
        if any(map(_opaque, eqn.outvars)):
            inner = inner.replace(outvars=[self.new(v) for v in eqn.outvars])
        return self.append(inner) is eqn


def _refusal(eqn: Eqn) -> str:
    types = " ".join(str(a.aval) for a in eqn.invars)
    where = f", asked for at {eqn.source}" if eqn.source else ""
    return f"{eqn.primitive} does not accept keys, got {types}{where}; random.key_data gives their words"


def _on_words(eqn: Eqn, args: Sequence[Any]) -> list[Any]:
    """The results of an equation for representations of its operands."""
    ambient.source = eqn.source
    avals = [a.aval for a in (*eqn.invars, *eqn.outvars)]
    dtype = next(a.dtype for a in avals if dtypes.is_extended(a.dtype))
    own = ON_WORDS.get(eqn.primitive)
    if own is not None:
        fun = lambda *words: own(dtype.impl, *words, **eqn.params)
        return [_each(fun, min(a.ndim for a in avals), args)]
    if eqn.primitive in (*CALLBACKS, inspect_sharding_p) and not any(map(_opaque, eqn.outvars)):
        return eqn.apply(args)
    if eqn.primitive.name not in MOVING:
        raise TypeError(_refusal(eqn))
    (size,) = dtype.element_shape
    dims = [a.aval.ndim if _opaque(a) else None for a in eqn.invars]
    outs, out_dims = eqn.primitive.rule("batch")(AxisData(size), args, dims, **eqn.params)
    if eqn.primitive in _REDUCED:
        return [_REDUCED[eqn.primitive](outs[0], (out_dims[0],))]
    pairs = zip(outs, out_dims, eqn.outvars, strict=True)
    return [match_axis(AxisData(size), d, v.aval.ndim, x) if _opaque(v) else x for x, d, v in pairs]


def _each(fun: Callable[..., Any], depth: int, args: Sequence[Any]) -> Any:
    """``fun`` of each element along the first ``depth`` dimensions."""
    if not depth:
        return fun(*args)
    axis = AxisData(args[0].shape[0])
    (out,), (dim,) = batch_flat(lambda *xs: [_each(fun, depth - 1, xs)], axis, args, [0] * len(args))
    return match_axis(axis, dim, 0, out)


def _longer_specs(eqn: Eqn) -> dict[str, Any]:
    """Nothing cuts the words of a key."""

    def longer(specs: Sequence[Any], atoms: Sequence[Atom]) -> tuple[Any, ...]:
        return tuple([(*s, ()) if _opaque(a) else s for s, a in zip(specs, atoms, strict=True)])

    params = eqn.params
    return {
        "in_specs": longer(params["in_specs"], eqn.invars),
        "out_specs": longer(params["out_specs"], eqn.outvars),
    }
