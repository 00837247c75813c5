"""The primitives of references: made, read, written to, added to, ended. All their rules.

``get[indices] ref *operands``, ``swap[indices] ref new *operands`` (which gives what was there), ``addupdate[indices]
ref more *operands``; ``indices`` apply one after the other, and none of them means all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.refs.indexing import Indices, changed_all, read_all, shape_at, text_of
from polyax.control.refs.ref import Cell, Ref
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.effects import Effects
from polyax.ir.jaxpr import is_literal_value
from polyax.ir.primitive import Primitive, def_rule
from polyax.ir.refs import ADDS, LIVES, READS, SWAPS, AbstractRef, is_ref
from polyax.ops.basis import convert, match_axis, zeros
from polyax.ops.zeros import instantiate
from polyax.trace.context import current_trace, set_trace
from polyax.trace.symbolic import Zero
from polyax.transforms.vmap import AxisData, batch_flat

new_ref_p = Primitive("new_ref")
empty_ref_p = Primitive("empty_ref")
freeze_p = Primitive("freeze")
free_ref_p = Primitive("free_ref", multiple_results=True)
get_p = Primitive("get")
swap_p = Primitive("swap")
addupdate_p = Primitive("addupdate", multiple_results=True)

PRIMITIVES = new_ref_p, empty_ref_p, freeze_p, free_ref_p, get_p, swap_p, addupdate_p

for _p in PRIMITIVES:
    _p.takes_refs = True
    _p.never("transpose", "what is linear in a reference runs backwards by its rule `backward`")
    _p.never("factors", "programs are rewritten without references before they are partitioned")

Typing = tuple[list[ShapedArray], Effects]


def refuse_other(p: str, x: Any) -> None:
    """Raises ValueError unless ``x`` is a reference that may be used."""
    if not is_ref(x) or (type(x) is Cell and x.ended):
        aval = aval_of(x) if hasattr(x, "aval") or not isinstance(x, ShapedArray) else x
        inner = aval.inner_aval if isinstance(aval, AbstractRef) else aval
        raise ValueError(f"`{p}` must be called on `Ref` types: {inner}.")


# --- their life -------------------------------------------------------------------------------------------------------


new_ref_p.makes_refs = empty_ref_p.makes_refs = True
swap_p.writes_refs = addupdate_p.writes_refs = True


@def_rule(new_ref_p, "abstract_eval")
def _new_abstract(x: ShapedArray, *, memory_space: Any, kind: Any) -> Typing:
    if is_ref(x):
        raise ValueError(f"new_ref: a reference can't hold a reference, got {x}; read it first, as in `ref[...]`.")
    return [AbstractRef(x, memory_space, kind)], LIVES


@def_rule(new_ref_p, "impl")
def _new(x: Any, *, memory_space: Any, kind: Any) -> list[Any]:
    if memory_space is not None:
        raise NotImplementedError("array ref with memory space only works inside of a `jit`.")
    return [Ref.holding(x, kind)]


@def_rule(new_ref_p, "jvp")
def _new_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    return [new_ref_p.bind1(*primals, **params)], [_tangent_ref(tangents[0], **params)]


def _tangent_ref(t: Any, **params: Any) -> Any:
    """Of tangents, whatever is written to it: it belongs to their program even if it begins with a known zero."""
    aval = t.aval if type(t) is Zero else aval_of(t)
    if aval.dtype == dtypes.float0:
        return Zero(AbstractRef(aval))
    t = instantiate(t)
    trace = current_trace()
    with set_trace(getattr(trace, "unknown", trace)):
        return new_ref_p.bind1(t, **params)


@def_rule(new_ref_p, "batch")
def _new_batch(axis: AxisData, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
    x = match_axis(axis, dims[0], dims[0] or 0, args[0])
    return new_ref_p.bind_all(x, **params), [dims[0] or 0]


@def_rule(empty_ref_p, "abstract_eval")
def _empty_abstract(*, ty: ShapedArray, memory_space: Any) -> Typing:
    return [AbstractRef(ty, memory_space)], LIVES


@def_rule(empty_ref_p, "impl")
def _empty(*, ty: ShapedArray, memory_space: Any) -> list[Any]:
    return [Ref.holding(convert(zeros(ty), ty.dtype, ty.weak_type))]


@def_rule(empty_ref_p, "jvp")
def _empty_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, ty: ShapedArray, memory_space: Any) -> Any:
    ref = empty_ref_p.bind1(ty=ty, memory_space=memory_space)
    return [ref], [_tangent_ref(Zero(ty.to_tangent_aval()), memory_space=memory_space, kind=None)]


@def_rule(empty_ref_p, "batch")
def _empty_batch(axis: AxisData, args: Any, dims: Any, *, ty: ShapedArray, memory_space: Any) -> Any:
    wider = ty.with_shape((axis.size, *ty.shape))
    return empty_ref_p.bind_all(ty=wider, memory_space=memory_space), [0]


@def_rule(freeze_p, "abstract_eval")
def _freeze_abstract(ref: AbstractRef) -> Typing:
    refuse_other("freeze", ref)
    return [ref.inner_aval], LIVES


@def_rule(freeze_p, "impl")
def _freeze(ref: Ref) -> list[Any]:
    refuse_other("freeze", ref)
    _end(ref)
    return [ref.held()]


def _end(ref: Ref) -> None:
    """In programs, using it afterwards is an error."""
    if type(ref) is Cell:
        ref.ended = True


@def_rule(freeze_p, "jvp")
def _freeze_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    return freeze_p.bind_all(*primals), freeze_p.bind_all(*tangents)


@def_rule(freeze_p, "batch")
def _freeze_batch(axis: AxisData, args: Sequence[Any], dims: Sequence[int | None]) -> Any:
    return freeze_p.bind_all(*args), list(dims)


@def_rule(free_ref_p, "abstract_eval")
def _free_abstract(ref: AbstractRef) -> Typing:
    refuse_other("free_ref", ref)
    return [], LIVES


@def_rule(free_ref_p, "impl")
def _free(ref: Ref) -> list[Any]:
    _end(ref)
    return []


@def_rule(free_ref_p, "jvp")
def _free_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    free_ref_p.bind(*primals)
    return [], []


@def_rule(free_ref_p, "batch")
def _free_batch(axis: AxisData, args: Sequence[Any], dims: Sequence[int | None]) -> Any:
    return free_ref_p.bind(*args), []


# --- get --------------------------------------------------------------------------------------------------------------


def _at(ref: ShapedArray, indices: Indices) -> ShapedArray:
    """The type of what is there."""
    assert isinstance(ref, AbstractRef)
    return _part(ref.inner_aval, indices)


def _part(held: ShapedArray, indices: Indices) -> ShapedArray:
    return held if not indices else held.with_shape(shape_at(held.shape, indices))


@def_rule(get_p, "abstract_eval")
def _get_abstract(ref: ShapedArray, *_: ShapedArray, indices: Indices) -> Typing:
    refuse_other("get", ref)
    return [_at(ref, indices)], READS


@def_rule(get_p, "impl")
def _get(ref: Ref, *operands: Any, indices: Indices) -> list[Any]:
    refuse_other("get", ref)
    if not indices:
        return [ref.held()]
    found = read_all(ref._refs, indices, operands)
    return [ref.held() if found is ref._refs else found]


@def_rule(get_p, "jvp")
def _get_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, indices: Indices) -> Any:
    return get_p.bind_all(*primals, indices=indices), get_p.bind_all(tangents[0], *primals[1:], indices=indices)


@def_rule(get_p, "batch")
def _get_batch(axis: AxisData, args: Sequence[Any], dims: Sequence[int | None], *, indices: Indices) -> Any:
    whole = get_p.bind1(args[0], indices=())
    if not indices:
        return [whole], [dims[0]]
    return batch_flat(lambda x, *xs: [read_all(x, indices, xs)], axis, [whole, *args[1:]], dims)


# --- swap and addupdate -----------------------------------------------------------------------------------------------


def _check_value(name: str, ref: Any, value: ShapedArray, indices: Indices) -> ShapedArray:
    """The type of what is there, which ``value`` must have; ``ref`` is a reference, or its type."""
    refuse_other(name, ref)
    aval = ref if isinstance(ref, ShapedArray) else ref.aval
    assert isinstance(aval, AbstractRef)
    return _check_fits(name, aval.inner_aval, value, indices)


def _check_fits(name: str, held: ShapedArray, value: ShapedArray, indices: Indices) -> ShapedArray:
    there = _part(held, indices)
    if value.shape != there.shape:
        raise ValueError(
            f"Invalid shape for `{name}`. Ref shape: {held.shape}. Expected shape: {there.shape}. Value shape: "
            f"{value.shape}. Transforms: {indices}. "
        )
    if value.dtype != there.dtype:
        what = "dtype" if name == "swap" else "shape"
        raise ValueError(f"Invalid dtype for `{name}`. Ref dtype: {there.dtype}. Value {what}: {value.dtype}. ")
    return there


@def_rule(swap_p, "abstract_eval")
def _swap_abstract(ref: ShapedArray, value: ShapedArray, *_: ShapedArray, indices: Indices) -> Typing:
    return [_check_value("swap", ref, value, indices)], SWAPS


@def_rule(addupdate_p, "abstract_eval")
def _addupdate_abstract(ref: ShapedArray, value: ShapedArray, *_: ShapedArray, indices: Indices) -> Typing:
    _check_value("addupdate", ref, value, indices)
    return [], ADDS


@def_rule(swap_p, "impl")
def _swap(ref: Ref, value: Any, *operands: Any, indices: Indices) -> list[Any]:
    before = ref._refs
    write(ref, value, *operands, indices=indices)
    return [read_all(before, indices, operands)]


def write(ref: Ref, value: Any, *operands: Any, indices: Indices) -> None:
    """Writes to a reference that holds its array."""
    there = _check_value("swap", ref, aval_of(value), indices)
    if type(ref) is Cell or is_literal_value(value):
        value = convert(value, there.dtype, there.weak_type)
    _replace(ref, changed_all(ref._refs, indices, operands, value), value)


@def_rule(addupdate_p, "impl")
def _addupdate(ref: Ref, value: Any, *operands: Any, indices: Indices) -> list[Any]:
    there = _check_value("addupdate", ref, aval_of(value), indices)
    value = convert(value, there.dtype, aval_of(value).weak_type)
    _replace(ref, changed_all(ref._refs, indices, operands, value, adds=True), value)
    return []


def _replace(ref: Ref, new: Any, value: Any) -> None:
    """Its type stays what it is: loops rely on it."""
    new = convert(new, ref.aval.dtype, ref.aval.weak_type)
    ref.hold(new, shared=new is value)


def _refuse(name: str, ref: Any, what: str, remedy: str) -> None:
    name = {"swap": "a set/swap", "addupdate": "an addupdate"}[name]
    raise Exception(  # JAX's class
        f"performing {name} operation with {what} array reference of type {aval_of(ref)}. Move the array reference to "
        f"be an argument {remedy}"
    )


def _write_jvp(p: Primitive) -> Callable[..., Any]:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, indices: Indices) -> Any:
        if type(tangents[0]) is Zero:
            what = "a differentiated value on a non-differentiated"
            _refuse(p.name, primals[0], what, "of the differentiated function?")
        operands = primals[2:]
        outs = p.bind_all(*primals, indices=indices)
        if type(tangents[1]) is Zero and p is addupdate_p:
            return outs, []
        return outs, p.bind_all(tangents[0], instantiate(tangents[1]), *operands, indices=indices)

    return jvp


def _write_batch(p: Primitive) -> Callable[..., Any]:
    def batch(axis: AxisData, args: Sequence[Any], dims: Sequence[int | None], *, indices: Indices) -> Any:
        (ref, value, *operands), (dim, value_dim, *_) = args, dims
        if dim is None:
            _refuse(p.name, ref, "vmapped value on an unbatched", "to the vmapped function?")
        if not indices:
            outs = p.bind_all(ref, match_axis(axis, value_dim, dim, value), indices=())
            return outs, [dim] * len(outs)

        def step(x: Any, new: Any, *xs: Any) -> list[Any]:
            _check_fits(p.name, aval_of(x), aval_of(new), indices)
            return [read_all(x, indices, xs), changed_all(x, indices, xs, new, adds=p is addupdate_p)]

        whole = get_p.bind1(ref, indices=())
        (old, new), (old_dim, new_dim) = batch_flat(step, axis, [whole, value, *operands], dims)
        swap_p.bind_all(ref, match_axis(axis, new_dim, dim, new), indices=())
        return ([old], [old_dim]) if p is swap_p else ([], [])

    return batch


for _p in (swap_p, addupdate_p):
    _p.jvp, _p.batch = _write_jvp(_p), _write_batch(_p)


# --- as text ----------------------------------------------------------------------------------------------------------


def _text(p: Primitive) -> Callable[..., str]:
    def text(outs: Sequence[str], ins: Sequence[Any], shape: tuple[int, ...], *, indices: Indices) -> str:
        first = 1 if p is get_p else 2
        place = f"{ins[0]}{text_of(shape, indices, ins[first:])}"
        if p is get_p:
            return f"{outs[0]} <- {place}"
        if p is addupdate_p:
            return f"{place} += {ins[1]}"
        return f"{place} <- {ins[1]}" if outs[0].startswith("_") else f"{outs[0]}, {place} <- {place}, {ins[1]}"

    return text


for _p in (get_p, swap_p, addupdate_p):
    _p.text = _text(_p)


# --- backwards --------------------------------------------------------------------------------------------------------


CotangentRefs = dict[Any, Any]
"""The references that stand for the cotangents of what references hold, by the variables of these; made when needed."""


def _ct_ref(refs: CotangentRefs, var: Any) -> Any:
    if var not in refs:
        refs[var] = empty_like(var.aval)
    return refs[var]


def _ended(refs: CotangentRefs, var: Any) -> Any:
    """What the reference of ``var`` has got, in the end; None if nobody needed it."""
    ref = refs.pop(var, None)
    return None if ref is None else freeze_p.bind1(ref)


def empty_like(aval: AbstractRef) -> Any:
    """A reference that holds zeros."""
    return fresh(zeros(aval.inner_aval))


def fresh(x: Any) -> Any:
    return new_ref_p.bind1(x, memory_space=None, kind=None)


def _no_cotangents(count: int) -> list[Any]:
    return [None] * count


@def_rule(new_ref_p, "backward")
def _new_backward(refs: CotangentRefs, cts: Sequence[Any], eqn: Any, primals: Sequence[Any]) -> list[Any]:
    return [_ended(refs, eqn.outvars[0])]


@def_rule(empty_ref_p, "backward")
def _empty_backward(refs: CotangentRefs, cts: Sequence[Any], eqn: Any, primals: Sequence[Any]) -> list[Any]:
    _ended(refs, eqn.outvars[0])
    return []


@def_rule(free_ref_p, "backward")
def _free_backward(refs: CotangentRefs, cts: Sequence[Any], eqn: Any, primals: Sequence[Any]) -> list[Any]:
    return [None]


@def_rule(freeze_p, "backward")
@def_rule(get_p, "backward")
def _get_backward(refs: CotangentRefs, cts: Sequence[Any], eqn: Any, primals: Sequence[Any]) -> list[Any]:
    """What was read is added to."""
    var, indices = eqn.invars[0], eqn.params.get("indices", ())
    if cts[0] is not None and type(cts[0]) is not Zero:
        if not indices and var not in refs:
            refs[var] = fresh(cts[0])
        else:
            addupdate_p.bind(_ct_ref(refs, var), cts[0], *primals[1:], indices=indices)
    return _no_cotangents(len(primals))


@def_rule(swap_p, "backward")
def _swap_backward(refs: CotangentRefs, cts: Sequence[Any], eqn: Any, primals: Sequence[Any]) -> list[Any]:
    """What was given was put in what was there: backwards, the same."""
    var, indices = eqn.invars[0], eqn.params["indices"]
    ct = cts[0]
    if var not in refs and ct is None:
        return _no_cotangents(len(primals))
    ct = instantiate(Zero(eqn.outvars[0].aval) if ct is None else ct)
    old = swap_p.bind1(_ct_ref(refs, var), ct, *primals[2:], indices=indices)
    return [None, old, *_no_cotangents(len(primals) - 2)]


@def_rule(addupdate_p, "backward")
def _addupdate_backward(refs: CotangentRefs, cts: Sequence[Any], eqn: Any, primals: Sequence[Any]) -> list[Any]:
    var = eqn.invars[0]
    if var not in refs:
        return _no_cotangents(len(primals))
    ct = get_p.bind1(refs[var], *primals[2:], indices=eqn.params["indices"])
    return [None, ct, *_no_cotangents(len(primals) - 2)]
