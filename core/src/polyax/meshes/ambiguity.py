"""Operations whose operands have to be cut alike, or not at all where indices point, to tell how results are cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polyax.ir.aval import ShapedArray
from polyax.ir.errors import ShardingTypeError
from polyax.meshes.current import mesh_in_force
from polyax.meshes.explicit import cuts_of
from polyax.meshes.factors import Dims, Factors
from polyax.meshes.spec import spec_of

REMEDY = (
    "Say how the result is to be cut with `out_sharding=`, cut operands otherwise with `polyax.reshard`, or leave it "
    "to the partitioner with `polyax.sharding.auto_axes`."
)
_UNCLEAR_RESHAPE = (
    "This reshape is not supported. Please specify the sharding of the output via the `out_sharding` argument of "
    "polyax.lax.reshape"
)
NEEDS_ALL = {
    "sort": "Arguments to sort must be unsharded over the sorting dimension: ",
    "reshape": f"{_UNCLEAR_RESHAPE}: ",
    **dict.fromkeys(
        ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"),
        "Input should be unsharded over the axis being reduced: ",
    ),
    **{
        name: f"Input {{n}} to {name} must be unsharded on non-batch dimensions, but got {{spec}}: "
        for name in ("cholesky", "eig", "eigh", "hessenberg", "lu", "qr", "schur", "svd", "tridiagonal")
    },
}
"""How errors begin about operands of primitives that are cut in dimensions of which each device needs all."""
Operands = Sequence[ShapedArray]


def check_clear(name: str, ins: Operands, found: Factors) -> None:
    """Raises ShardingTypeError if the operands of the primitive ``name``, by its factors, leave open how results are
    cut, or could be cut so with exchanges alone."""
    check = _CHECKS.get(name)
    if check is not None:
        check(ins, found)


def types(avals: Operands) -> str:
    return ", ".join(a.str_short(short_dtypes=True) for a in avals)


def _differ(ins: Operands) -> bool:
    """What isn't cut may lie anywhere, unless the user set a mesh for all that is computed here."""
    cuts = [cuts_of(a) for a in ins]
    return len({c for c in cuts if any(c) or mesh_in_force() is not None}) > 1


def _differ_where_placed(ins: Operands) -> bool:
    """The same, of those that don't come from the host."""
    return _differ([a for a in ins if a.placed])


def check_choice(which: ShapedArray, cases: Operands) -> None:
    """Raises ShardingTypeError unless what a user chooses from is cut alike; what isn't cut, too, where there is a mesh
    for all that is computed."""
    if _differ_where_placed(cases):
        raise ShardingTypeError(
            f"select cases must have the same shardings, got {types(cases)}. Cut them alike with `polyax.reshard`."
        )
    if which.shape and _differ_where_placed((which, cases[0])):
        raise ShardingTypeError(
            "select `which` must be scalar or have the same sharding as cases, got `which` sharding "
            f"{types([which])} but case sharding {types(cases[:1])}. Cut them alike with `polyax.reshard`."
        )


def _joined(ins: Operands, _: Factors) -> None:
    if _differ_where_placed(ins):
        specs = ", ".join(str(spec_of(cuts_of(a))) for a in ins)
        raise ShardingTypeError(
            f"All operands should have the same sharding. Got shardings {specs} of operands {types(ins)}, to be "
            f"concatenated. {REMEDY}"
        )


def _updated(ins: Operands, _: Factors) -> None:
    if _differ(ins[:2]):
        operand, update = (a.str_short() for a in ins[:2])
        raise ShardingTypeError(
            "dynamic_update_slice operand sharding must be equal to update sharding, got operand sharding "
            f"{operand} and update sharding {update}. Cut the update as the operand, with `polyax.reshard`."
        )


def _cut_elsewhere(ins: Operands, found: Factors, slices: Dims) -> bool:
    """Whether something is cut that isn't a dimension of the operand of which slices have all."""
    of_slices = {f for dim in slices for f in dim}
    free = {f for dim in found.ins[0] for f in dim} & of_slices
    entries = [e for a, dims in zip(ins, found.ins, strict=True) for e in zip(a.shape, dims, cuts_of(a), strict=True)]
    return any(names and n > 1 and not (dim and free.issuperset(dim)) for n, dim, names in entries)


def _gathered(ins: Operands, found: Factors) -> None:
    if _cut_elsewhere(ins, found, found.outs[0]):
        raise ShardingTypeError(
            "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing as out sharding "
            f"could not be resolved unambiguously (or would require collectives on inputs). Got operand={ins[0]!r}, "
            f"indices={ins[1]!r}"
        )


def _scattered(ins: Operands, found: Factors) -> None:
    if _cut_elsewhere(ins, found, found.ins[2]):
        raise ShardingTypeError(
            "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the scatter update as "
            "out sharding could not be resolved unambiguously (or would require collectives on inputs). Got "
            f"operand={ins[0]!r}, indices={ins[1]!r}, updates={ins[2]!r}"
        )


def _reshaped(ins: Operands, found: Factors) -> None:
    """A dimension that is cut may be split, or merged with others, of which the outermost ones are cut."""
    (x,), (old,), (new,) = ins, found.ins, found.outs
    cuts = cuts_of(x)
    for d, dim in enumerate(old):
        if not cuts[d] or x.shape[d] == 1:
            continue
        targets = [t for t in new if set(t) & set(dim)]
        sources = [k for k, s in enumerate(old) if any(set(s) & set(t) for t in targets)]
        before = [k for k in sources if k < d]
        if not targets or (len(targets) > 1 and len(sources) > 1) or not all(cuts[k] for k in before):
            raise ShardingTypeError(
                f"{_UNCLEAR_RESHAPE}. Got operand type: {x}, of which dimension {d} is cut along "
                f"{', '.join(map(repr, cuts[d]))}, and falls into others. {REMEDY}"
            )


def _convolved(ins: Operands, found: Factors) -> None:
    for a, dims in zip(ins, found.ins, strict=True):
        for dim, names in zip(dims, cuts_of(a), strict=True):
            if names and set(dim) & set(found.reduced):
                raise ShardingTypeError(
                    "Please specify the output sharding: conv_general_dilated sums over features, which are cut along "
                    f"{', '.join(map(repr, names))}; got {types(ins)}. {REMEDY}"
                )


_SCATTERS = ("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max")
_CHECKS: dict[str, Callable[[Operands, Factors], None]] = {
    "concatenate": _joined,
    "conv_general_dilated": _convolved,
    "dynamic_update_slice": _updated,
    "gather": _gathered,
    "reshape": _reshaped,
    **dict.fromkeys(_SCATTERS, _scattered),
}
