"""Indices of which one counts the rows, as in ``x[arange(n), i]``: each is looked up in a row of its own.

Said so, rows that are cut stay where they are; to whoever sees numbers alone, any index may point to any row.
"""

from __future__ import annotations

from collections.abc import Mapping

from polyax.ir.dtypes import iinfo, is_integer
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from polyax.ops.gather import gather_p
from polyax.ops.scatter import scatter_add_p, scatter_max_p, scatter_min_p, scatter_mul_p, scatter_p, scatter_sub_p
from polyax.ops.slicing import slice_p

Made = Mapping[Atom, Eqn]
STEPS = 8
"""Of how many equations the numbers may be made."""
SCATTERS = (scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p)


def by_rows(program: ClosedJaxpr) -> ClosedJaxpr:
    """The program, in which such gathers and scatters have batch dimensions."""
    eqns = program.jaxpr.eqns
    if not any(e.primitive is gather_p or e.primitive in SCATTERS for e in eqns):
        return program
    made: Made = {v: e for e in eqns for v in e.outvars}
    changed = [new for e in eqns for new in _by_rows(e, made)]
    if len(changed) == len(eqns):
        return program
    jaxpr = program.jaxpr
    jaxpr = Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.outvars, changed, jaxpr.effects, jaxpr.debug_name)
    return ClosedJaxpr(jaxpr, program.consts)


def _by_rows(eqn: Eqn, made: Made) -> list[Eqn]:
    if eqn.primitive is gather_p:
        collapsed, pointed, batch = "collapsed_slice_dims", "start_index_map", "start_indices_batching_dims"
    elif eqn.primitive in SCATTERS:
        collapsed, pointed = "inserted_window_dims", "scatter_dims_to_operand_dims"
        batch = "scatter_indices_batching_dims"
    else:
        return [eqn]
    numbers, (array, indices) = eqn.params["dimension_numbers"], eqn.invars[:2]
    dims, count = getattr(numbers, pointed), indices.aval.shape[-1] if indices.aval.ndim else 0
    for k in {0, count - 1} if count > 1 and not numbers.operand_batching_dims else ():
        d, row = dims[k], _counted(_component(indices, k, made), made)
        if row is None or d not in getattr(numbers, collapsed) or indices.aval.shape[row] != array.aval.shape[d]:
            continue
        rest = [n for n in range(count) if n != k]
        fewer = Var(indices.aval.with_shape((*indices.aval.shape[:-1], count - 1)))
        new = numbers._replace(**{
            collapsed: tuple([n for n in getattr(numbers, collapsed) if n != d]),
            pointed: tuple([dims[n] for n in rest]),
            "operand_batching_dims": (d,),
            batch: (row,),
        })  # fmt: skip
        return [_sliced(eqn, indices, fewer, rest), eqn.replace(
            invars=[array, fewer, *eqn.invars[2:]], params=eqn.params | {"dimension_numbers": new}
        )]  # fmt: skip
    return [eqn]


def _sliced(eqn: Eqn, indices: Atom, fewer: Var, rest: list[int]) -> Eqn:
    start = (*(0,) * (indices.aval.ndim - 1), rest[0])
    limit = (*indices.aval.shape[:-1], rest[-1] + 1)
    params = {"start_indices": start, "limit_indices": limit, "strides": None}
    return eqn.replace(primitive=slice_p, invars=[indices], outvars=[fewer], params=params)


def _component(indices: Atom, k: int, made: Made) -> Atom | None:
    """What the indices are along their dimension ``k``, if that was put there as a whole."""
    eqn = made.get(indices)
    if eqn is None or eqn.primitive.name != "concatenate" or eqn.params["dimension"] != indices.aval.ndim - 1:
        return None
    at = 0
    for part in eqn.invars:
        if at == k and part.aval.shape[-1] == 1:
            return part
        at += part.aval.shape[-1]
    return None


def _counted(atom: Atom | None, made: Made, steps: int = STEPS) -> int | None:
    """The dimension along which the numbers are 0, 1, 2 and so on, if they are."""
    eqn = None if atom is None or not steps else made.get(atom)
    if eqn is None:
        return None
    found = _counted_by(eqn, made, steps - 1)
    (out,) = eqn.outvars
    fits = found is not None and is_integer(out.aval.dtype) and out.aval.shape[found] - 1 <= iinfo(out.aval.dtype).max
    return found if fits else None


def _counted_by(eqn: Eqn, made: Made, steps: int) -> int | None:
    name, params = eqn.primitive.name, eqn.params
    if name == "iota":
        return params["dimension"]
    if name == "convert_element_type":
        return _counted(eqn.invars[0], made, steps)
    if name == "select_n":
        return _counted(eqn.invars[1], made, steps) if _below_zero(eqn.invars[0], eqn.invars[1], made) else None
    if name not in ("broadcast_in_dim", "reshape") or params.get("dimensions") is not None:
        return None
    before = _counted(eqn.invars[0], made, steps)
    if before is None:
        return None
    if name == "broadcast_in_dim":
        return params["broadcast_dimensions"][before]
    return _with_ones(eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape, before)


def _below_zero(which: Atom, numbers: Atom, made: Made) -> bool:
    """Whether it asks which of the numbers are negative: of those that count, none is."""
    eqn = made.get(which)
    if eqn is None or eqn.primitive.name != "lt" or eqn.invars[0] is not numbers:
        return False
    least = eqn.invars[1]
    return isinstance(least, Literal) and not least.aval.ndim and least.val == 0


def _with_ones(old: tuple[int, ...], new: tuple[int, ...], dim: int) -> int | None:
    """Where a dimension is after others of size one came or went."""
    if [n for n in old if n != 1] != [n for n in new if n != 1] or old[dim] == 1:
        return None
    place = sum(n != 1 for n in old[:dim])
    return [d for d, n in enumerate(new) if n != 1][place]
