"""What types tell of sums that are still to be made (``{U:x}``), and of values whose cotangents are such (``{R:x}``),
through operations: what is linear in such sums gives one, and the rest asks that they are made first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polyax.ir.aval import NO_SUMS, ShapedArray
from polyax.ir.errors import ShardingTypeError
from polyax.ir.primitive import Primitive
from polyax.meshes.explicit import cuts_of
from polyax.meshes.spec import NO_AXES, Sums

Both = tuple[Sums, Sums]
"""Along which axes a value is a sum still to be made, and along which its cotangent is."""

PASSING = frozenset(
    (
        "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "dynamic_slice", "dynamic_update_slice",
        "expand_dims", "pad", "psum_invariant", "pvary", "reduce_precision", "reduce_sum", "reshape", "select_n",
        "slice", "split", "squeeze", "transpose",
    )
)  # fmt: skip
"""Operations that leave sums what they are."""


def in_type(aval: ShapedArray) -> Both:
    if aval.told is None:
        return aval.sums
    return aval.sums[0] | aval.told.spec.unreduced, aval.sums[1] | aval.told.spec.reduced


def waiting(avals: Sequence[ShapedArray]) -> bool:
    """Whether types tell of sums at all."""
    return any(in_type(a) != NO_SUMS for a in avals)


def left(
    primitive: Primitive, ins: Sequence[ShapedArray], params: Mapping[str, Any], outs: Sequence[ShapedArray]
) -> list[ShapedArray]:
    """The types of results along axes that are manual, from those of operands."""
    told = primitive.higher_order or primitive.only_transposed  # its programs and rules tell
    if primitive.name not in RULES and (told or not waiting(ins)):
        return list(outs)
    found = results(primitive, ins, params)
    return [a.update(sums=found) for a in outs]


def results(primitive: Primitive, ins: Sequence[ShapedArray], params: Mapping[str, Any]) -> Both:
    """What types of results tell of sums.

    Raises:
      ShardingTypeError: operands don't agree.
      NotImplementedError: the operation isn't linear, so that the sums must be made first.
    """
    rule = RULES.get(primitive.name)
    if rule is not None:
        return rule(ins, **params)
    if primitive.name in PASSING:
        return _passed(primitive, ins)
    unreduced = any(in_type(a)[0] for a in ins)
    if primitive.elementwise and not unreduced:
        return NO_AXES, _reduced(ins)
    what = "unreduced" if primitive.elementwise else "unreduced/reduced"
    raise NotImplementedError(
        f"{what} rule for {primitive} is not implemented: it would need sums that are still to be made, got "
        f"{_types(ins)}. Make them first with `polyax.reshard`."
    )


def _types(avals: Sequence[ShapedArray]) -> str:
    return ", ".join(a.str_short(short_dtypes=True) for a in avals)


def _passed(primitive: Primitive, ins: Sequence[ShapedArray]) -> Both:
    arrays = [a for a in ins if a.ndim] or ins
    if primitive.name == "select_n":
        arrays = ins[1:]
    found = {in_type(a)[0] for a in arrays}
    if len(found) > 1:
        raise ShardingTypeError(
            f"All operands of {primitive} should be unreduced along the same mesh axes. Got {_types(ins)}"
        )
    return found.pop(), _reduced(arrays)


def _reduced(ins: Sequence[ShapedArray]) -> Sums:
    """The axes along which cotangents are sums, alike for all operands; scalars are as they have to be."""
    found = {r for a in ins if (r := in_type(a)[1])}
    if len(found) > 1:
        raise ShardingTypeError(
            f"All inputs should be reduced across the same mesh axes. Got specs: {', '.join(map(str, map(set, found)))}"
        )
    axes = found.pop() if found else NO_AXES
    for a in ins if axes else ():
        _check_reduced(a, axes)
    return axes


def _check_reduced(a: ShapedArray, axes: Sums) -> None:
    cut = axes.intersection(a.vma.union(*cuts_of(a)))
    if cut:
        raise ShardingTypeError(
            "Inputs cannot be sharded/varying on the same axes that another input is reduced on. Reshard the input "
            "which is reduced to be sharded on the mesh axes it is reduced on via `polyax.reshard(inp, polyax.P(...))`."
            f" Got input type: {a} and reduced spec: {set(axes)}"
        )
    if a.ndim and axes - in_type(a)[0] - in_type(a)[1]:
        raise ShardingTypeError(
            "Inputs cannot be replicated on the same axes that another input is reduced on. "
            f"Got input type: {a} and reduced spec: {set(axes)}"
        )


def _add(ins: Sequence[ShapedArray], **_: Any) -> Both:
    reduced, (x, y) = _reduced(ins), [in_type(a)[0] for a in ins]
    if x and y and x != y:
        raise ShardingTypeError(
            f"lhs and rhs to `add` must be unreduced along the same mesh axes. Got lhs={set(x)}, rhs={set(y)}"
        )
    if bool(x) != bool(y):
        this, that = ("lhs", "rhs") if x else ("rhs", "lhs")
        raise ShardingTypeError(
            f"{this} is unreduced while {that} is not. `add` operation does not allow this because there will be "
            f"implicit communication. Please reduce {this} via `reshard` before calling `add`."
        )
    return x, reduced


def _mul(ins: Sequence[ShapedArray], **_: Any) -> Both:
    reduced, (x, y) = _reduced(ins), [in_type(a)[0] for a in ins]
    if x and y:
        raise ShardingTypeError(
            f"lhs and rhs to `mul` cannot be unreduced since mul is bilinear. Got lhs={set(x)}, rhs={set(y)}"
        )
    if not (x or y):
        return NO_AXES, reduced
    other, this, that = (ins[1], "RHS", "LHS") if x else (ins[0], "LHS", "RHS")
    if in_type(other)[1] != (x or y):
        raise ShardingTypeError(
            f"{this} should be reduced along the same axes {that} is unreduced on. Got lhs={ins[0]} and rhs={ins[1]}"
        )
    return x or y, NO_AXES


def _dot_general(ins: Sequence[ShapedArray], **_: Any) -> Both:
    if any(in_type(a)[0] for a in ins):
        raise ShardingTypeError(
            f"lhs or rhs passed to dot_general cannot be unreduced. Got lhs={ins[0]} and rhs={ins[1]}"
        )
    return NO_AXES, NO_AXES


RULES: dict[str, Callable[..., Both]] = {"add": _add, "mul": _mul, "dot_general": _dot_general}
"""By the names of primitives ``(avals, **params) -> Both``; operations that make sums add theirs."""
