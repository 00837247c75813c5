"""Narrow types where a program is compiled: their codes take the place of values, a byte each, and what computes with
numbers does so in a wider type and rounds each of its results. So no device knows of types of less than a byte, nor of
floats of 8 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax.control.callback import CALLBACKS, debug_print_p
from polyax.control.elaboration import MOVING
from polyax.control.inner.programs import with_programs
from polyax.control.inner.stand_ins import StandIns
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.dtypes import bits_of
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Literal, sub_jaxprs
from polyax.ir.primitive import Primitive, ambient
from polyax.ops import basis, compare, elementwise, gather, reduce
from polyax.ops.codes import CODE, code_of, computed_in, format_of, number
from polyax.ops.convert import bitcast_convert_type_p
from polyax.trace.recording import trace_to_jaxpr
from polyax.transforms.memo import memoize_by_jaxpr

_BY_BITS = frozenset(("dynamic_update_slice", "scatter", *MOVING)) - {"eq", "ne", "sort"}
_UNSIGNED = (compare.shift_right_logical_p, compare.population_count_p, compare.clz_p)
"""What looks at the bits of integers as they are."""


@memoize_by_jaxpr
def coded(program: ClosedJaxpr) -> ClosedJaxpr:
    """``program`` on codes where it has values of narrow types; itself, if it has none."""
    return _Coding().of(program)


def _narrow(atom: Atom) -> bool:
    return atom.aval.dtype in dtypes.NARROW


class _Coding(StandIns):
    """Codes stand for values of narrow types."""

    def concerns(self, atom: Atom) -> bool:
        return _narrow(atom)

    def type_of(self, aval: ShapedArray) -> ShapedArray:
        return aval.update(dtype=CODE, weak_type=False)

    def literal(self, atom: Literal) -> Literal:
        value = np.asarray(atom.val).astype(atom.aval.dtype)
        return Literal(_code(value)[()], self.type_of(atom.aval))

    def const(self, value: Any) -> np.ndarray:
        return _code(value)

    def put(self, eqn: Eqn) -> bool:
        concerned = any(map(_narrow, (*eqn.invars, *eqn.outvars)))
        if sub_jaxprs(eqn) or not concerned:
            inner = with_programs(eqn, coded)
            if concerned:
                inner = inner.replace(outvars=[self.new(v) for v in eqn.outvars])
            return self.append(inner) is eqn
        operands = [self.read(a) for a in eqn.invars]
        avals = [a.aval.update(vma=frozenset(), sharding=None) for a in operands]
        made = trace_to_jaxpr(lambda *args: _on_codes(eqn, args), avals, name=eqn.primitive.name)
        self.put_program(eqn, made, operands)
        return False


def _code(value: Any) -> np.ndarray:
    return np.asarray(value).view(CODE)


def _on_codes(eqn: Eqn, args: Sequence[Any]) -> Sequence[Any]:
    """The results of an equation, for codes of its narrow operands."""
    ambient.source = eqn.source
    own = _OWN.get(eqn.primitive)
    if own is not None:
        return own(eqn, *args)
    if eqn.primitive.name in _BY_BITS:
        return eqn.primitive.bind_all(*args, **eqn.params)
    return _on_numbers(eqn, args)


def _on_numbers(eqn: Eqn, args: Sequence[Any]) -> list[Any]:
    """In wider types, from which each result is rounded."""
    wide = [_number(x, a.aval.dtype) if _narrow(a) else x for x, a in zip(args, eqn.invars, strict=True)]
    params = {name: _wider(value) for name, value in eqn.params.items()}
    outs = eqn.primitive.bind_all(*wide, **params)
    return [code_of(x, v.aval.dtype) if _narrow(v) else x for x, v in zip(outs, eqn.outvars, strict=True)]


def _number(code: Any, dtype: Any) -> Any:
    return basis.convert(number(code, dtype), computed_in(dtype))


def _wider(param: Any) -> Any:
    return computed_in(param) if isinstance(param, np.dtype) and param in dtypes.NARROW else param


# --- primitives with rules of their own -------------------------------------------------------------------------------


def _converted(eqn: Eqn, x: Any) -> list[Any]:
    """Through no other type than float32, or that of integers."""
    source, target = eqn.invars[0].aval.dtype, eqn.params["new_dtype"]
    value = number(x, source) if source in dtypes.NARROW else x
    return [code_of(value, target) if target in dtypes.NARROW else basis.convert(value, target)]


def _as_bits(eqn: Eqn, x: Any) -> list[Any]:
    """By way of bytes: what is narrower lies in them one after the other, the lowest bits first."""
    source, target, shape = eqn.invars[0].aval, eqn.params["new_dtype"], eqn.outvars[0].aval.shape
    old, new = bits_of(source.dtype), bits_of(target)
    if source.dtype not in dtypes.NARROW:
        x = bitcast_convert_type_p.bind1(x, new_dtype=CODE)
    if new < min(old, 8):
        x = basis.reshape(_split(x, new, min(old, 8)), shape)
    elif old < min(new, 8):
        x = _packed(basis.reshape(x, (*source.shape[:-1], max(new // 8, 1), min(new, 8) // old)), old)
        x = basis.reshape(x, shape) if new <= 8 else x
    return [x if target in dtypes.NARROW else bitcast_convert_type_p.bind1(x, new_dtype=target)]


def _split(x: Any, width: int, whole: int) -> Any:
    """The parts of ``width`` bits of numbers of ``whole`` bits, along a new last dimension."""
    at = _places((*np.shape(x), whole // width), width)
    parts = compare.shift_right_logical(basis.broadcast_in_dim(x, np.shape(at), range(np.ndim(x))), at)
    return compare.bitwise_and(parts, basis.full_like(parts, (1 << width) - 1))


def _packed(parts: Any, width: int) -> Any:
    """What parts of ``width`` bits along the last dimension make together."""
    moved = compare.shift_left(parts, _places(np.shape(parts), width))
    return basis.reduce_sum(moved, (np.ndim(parts) - 1,))


def _places(shape: tuple[int, ...], width: int) -> Any:
    return basis.mul(basis.broadcasted_iota(CODE, shape, len(shape) - 1), np.uint8(width))


def _gathered(eqn: Eqn, x: Any, indices: Any) -> list[Any]:
    """What is filled in is a code as well."""
    dtype, fill = eqn.invars[0].aval.dtype, eqn.params["fill_value"]
    code = None if fill is None else int(_code(np.asarray(fill).astype(dtype)))
    return eqn.primitive.bind_all(x, indices, **(eqn.params | {"fill_value": code}))


def _extremum(eqn: Eqn, x: Any) -> list[Any]:
    """Of no numbers, the outermost number of the narrow type."""
    dtype = eqn.invars[0].aval.dtype
    (made,) = eqn.primitive.bind_all(_number(x, dtype), **eqn.params)
    low, high = (basis.full_like(made, e.astype(aval_of(made).dtype)) for e in dtypes.extremes(dtype))
    return [code_of(elementwise.max(elementwise.min(made, high), low), dtype)]


def _shifted(eqn: Eqn, x: Any, y: Any) -> list[Any]:
    """The highest bit is that of the sign, of unsigned integers too."""
    dtype = eqn.invars[0].aval.dtype
    signed = dtypes.NARROW_INTS[dtype.name.removeprefix("u")]
    made = compare.shift_right_arithmetic(number(x, signed), basis.convert(y, np.dtype("int8")))
    return [code_of(made, dtype)]


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    have = np.shape(x)
    return x if have == shape else basis.broadcast_in_dim(x, shape, range(len(shape) - len(have), len(shape)))


def _next(eqn: Eqn, x: Any, y: Any) -> list[Any]:
    """Away from zero is the next code, if there is a sign; the first numbers on both sides of zero have the code 1."""
    dtype = eqn.invars[0].aval.dtype
    f = format_of(dtype)
    x, y = (_spread(a, eqn.outvars[0].aval.shape) for a in (x, y))
    value, goal = number(x, dtype), number(y, dtype)
    sign = compare.bitwise_and(basis.select_n(basis.eq(value, 0.0), x, y), np.uint8(f.sign))
    outward = basis.eq(compare.lt(value, goal), basis.eq(sign, np.uint8(0)))
    moved = basis.select_n(outward, basis.sub(x, np.uint8(1)), basis.add(x, np.uint8(1)))
    moved = basis.select_n(basis.eq(value, 0.0), moved, compare.bitwise_or(sign, np.uint8(1)))
    still = basis.select_n(basis.eq(value, goal), moved, y)
    unknown = compare.bitwise_or(compare.ne(value, value), compare.ne(goal, goal))
    return [basis.select_n(unknown, still, code_of(basis.add(value, goal), dtype))]


def _looked_at(eqn: Eqn, *args: Any) -> list[Any]:
    """Bits of integers; those above them are zeros, which are no leading ones."""
    dtype = eqn.invars[0].aval.dtype
    (made,) = eqn.primitive.bind_all(*args)
    more = 8 - bits_of(dtype) if eqn.primitive is compare.clz_p else 0
    return [basis.sub(made, np.uint8(more)) if more else made]


def _called(eqn: Eqn, *args: Any) -> list[Any]:
    """Users' functions get and give values of narrow types."""
    ins, outs = [a.aval.dtype for a in eqn.invars], eqn.params.get("result_avals", ())
    params: dict[str, Any] = {"callback": CodedCallback(eqn.params["callback"], tuple(ins), outs)}
    if outs:
        params["result_avals"] = tuple([a.update(dtype=CODE) if a.dtype in dtypes.NARROW else a for a in outs])
    return eqn.primitive.bind_all(*args, **(eqn.params | params))


@dataclass(frozen=True)
class CodedCallback:
    """A callback on values, for codes of them."""

    callback: Callable[..., Any]
    ins: tuple[Any, ...]
    outs: tuple[Any, ...]

    def __call__(self, arrays: Sequence[np.ndarray], avals: Any) -> list[np.ndarray]:
        values = [np.asarray(x).view(d) if d in dtypes.NARROW else x for x, d in zip(arrays, self.ins, strict=True)]
        results = self.callback(values, self.outs)
        return [_code(x) if a.dtype in dtypes.NARROW else x for x, a in zip(results, self.outs)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.callback, name)


_OWN: dict[Primitive, Callable[..., Sequence[Any]]] = {
    basis.convert_element_type_p: _converted,
    bitcast_convert_type_p: _as_bits,
    gather.gather_p: _gathered,
    reduce.reduce_max_p: _extremum,
    reduce.reduce_min_p: _extremum,
    compare.shift_right_arithmetic_p: _shifted,
    elementwise.nextafter_p: _next,
    **dict.fromkeys(_UNSIGNED, _looked_at),
    **{p: _called for p in CALLBACKS if p is not debug_print_p},
}
