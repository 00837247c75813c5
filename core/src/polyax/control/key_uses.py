"""How programs use random keys: which inputs they consume, which results are new keys, which are inputs passed on.

A key may be consumed once. Programs are read from the outside: one that is called consumes what its signature says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from polyax.control.callback import CALLBACKS
from polyax.control.flow.cond import cond_p
from polyax.control.flow.scan import ScanParts, scan_p
from polyax.control.flow.while_loop import WhileParts, while_p
from polyax.ir import dtypes
from polyax.ir.errors import KeyReuseError
from polyax.ir.jaxpr import ClosedJaxpr, Eqn, sub_jaxprs
from polyax.ir.primitive import Primitive
from polyax.ops.keys import assert_consumed_value_p
from polyax.transforms.memo import memoize_by_jaxpr

Mask = bool | np.ndarray
"""Which of the keys of an array; True for all of them."""


class _Part:
    """Some of the keys of an operand or a result."""

    __slots__ = ("idx", "mask")
    shown = ""
    """What JAX calls it."""

    def __init__(self, idx: int, mask: Any = True) -> None:
        self.idx = idx
        whole = np.ndim(mask) == 0 or not np.any(mask) or bool(np.all(mask))
        self.mask: Mask = bool(np.any(mask)) if whole else np.array(mask, bool)

    def _key(self) -> tuple[Any, ...]:
        mask = self.mask if isinstance(self.mask, bool) else (self.mask.shape, self.mask.tobytes())
        return type(self).__name__, self.idx, mask

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Part) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        mask = "" if self.mask is True else f", {self.mask}"
        return f"{self.shown}({self.idx}{mask})"


class KeySink(_Part):
    """Keys of an operand that are consumed."""

    __slots__ = ()
    shown = "Sink"


class KeySource(_Part):
    """Keys of a result that are new."""

    __slots__ = ()
    shown = "Source"


class KeyForward(NamedTuple):
    """A result that has the keys of an operand."""

    in_idx: int
    out_idx: int

    def __repr__(self) -> str:
        return f"Forward({self.in_idx}, {self.out_idx})"


class KeyReuseSignature:
    """What an equation or a program does with keys: any number of ``KeySink``, ``KeySource`` and ``KeyForward``."""

    def __init__(self, *parts: KeySink | KeySource | KeyForward) -> None:
        self._parts = frozenset(parts)

    @property
    def sinks(self) -> list[KeySink]:
        return sorted((p for p in self._parts if isinstance(p, KeySink)), key=lambda p: p.idx)

    @property
    def sources(self) -> list[KeySource]:
        return sorted((p for p in self._parts if isinstance(p, KeySource)), key=lambda p: p.idx)

    @property
    def forwards(self) -> list[KeyForward]:
        return sorted(p for p in self._parts if isinstance(p, KeyForward))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyReuseSignature) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __repr__(self) -> str:
        return f"KeyReuseSignature{(*self.sinks, *self.sources, *self.forwards)}"


class KeyUse(NamedTuple):
    """The signature of a program, whose operands are its inputs, its constants, and ``held``: those of programs that it
    calls."""

    signature: KeyReuseSignature
    held: tuple[Any, ...]


def is_key(x: Any) -> bool:
    return dtypes.issubdtype(x.aval.dtype, dtypes.prng_key)


def uses_keys(program: ClosedJaxpr) -> bool:
    atoms = (*program.jaxpr.constvars, *program.jaxpr.invars, *(v for e in program.eqns for v in e.outvars))
    return any(map(is_key, atoms)) or any(uses_keys(p) for e in program.eqns for p in sub_jaxprs(e))


@memoize_by_jaxpr
def key_use(program: ClosedJaxpr) -> KeyUse:
    """How a program uses keys.

    Raises:
      KeyReuseError: it consumes one twice.
    """
    reader = _Reader()
    for eqn in program.eqns:
        reader.read(eqn)
    return reader.use([*program.jaxpr.invars, *program.jaxpr.constvars], program.jaxpr.outvars)


class _Reader:
    """Goes through a program. Constants of programs that it calls, which are no variables, are known by their ids."""

    def __init__(self) -> None:
        self.consumed: dict[Any, Mask] = {}
        self.origins: dict[Any, Any] = {}
        self.held: dict[int, Any] = {}

    def read(self, eqn: Eqn) -> None:
        signature, constants = _signature(eqn)
        if eqn.primitive is assert_consumed_value_p:
            self._compare(eqn)
        self.held |= {id(x): x for x in constants if is_key(x)}
        operands = [*eqn.invars, *map(id, constants)]
        for at, out in signature.forwards:
            self.origins[eqn.outvars[out]] = operands[at]
        for sink in signature.sinks:
            if not self._consume(operands[sink.idx], sink.mask):
                raise KeyReuseError(f"In {eqn.primitive}, argument {sink.idx} is already consumed.{_at(eqn)}")
        new = {eqn.outvars[s.idx]: np.logical_not(s.mask) for s in signature.sources}
        for v in eqn.outvars:
            if is_key(v) and v not in self.origins:
                self.consumed[v] = new.get(v, True)

    def _compare(self, eqn: Eqn) -> None:
        expected, found = eqn.params["value"], self.consumed.get(self._origin(eqn.invars[0]), False)
        if not np.all(np.equal(expected, found)):
            what = {True: "be consumed", False: "not be consumed"}.get(expected, f"be consumed as {expected}")
            raise AssertionError(f"Expected key to {what} in {eqn.primitive}: found {found}.{_at(eqn)}")

    def _origin(self, x: Any) -> Any:
        while x in self.origins:
            x = self.origins[x]
        return x

    def _consume(self, x: Any, mask: Mask) -> bool:
        """Whether it could be."""
        origin = self._origin(x)
        before = self.consumed.get(origin, False)
        if origin is not x and np.ndim(mask):  # it may have been moved in between
            mask = np.reshape(mask, np.shape(before)) if np.size(mask) == np.size(before) else True
        if np.any(np.logical_and(before, mask)):
            return False
        self.consumed[origin] = np.logical_or(before, mask)
        return True

    def use(self, inputs: list[Any], outs: Sequence[Any]) -> KeyUse:
        inputs = [*inputs, *self.held]
        numbers = {x: n for n, x in enumerate(inputs)}
        parts: list[Any] = [KeySink(n, m) for x, n in numbers.items() if np.any(m := self.consumed.get(x, False))]
        for n, v in enumerate(outs):
            if not is_key(v):
                continue
            origin = self._origin(v)
            if origin in numbers:
                parts.append(KeyForward(numbers[origin], n))
            elif not np.any(self.consumed.get(origin, False)):
                parts.append(KeySource(n))
        return KeyUse(KeyReuseSignature(*parts), tuple(self.held.values()))


def _at(eqn: Eqn) -> str:
    return "" if eqn.source is None else f" It is used at {eqn.source}."


# --- equations --------------------------------------------------------------------------------------------------------

_NOTHING = KeyReuseSignature()
_PASSED_ON = KeyReuseSignature(KeyForward(0, 0))
_NEW = KeyReuseSignature(KeySource(0))
_PASSING = (
    "broadcast_in_dim convert_element_type copy dynamic_slice gather name pvary reshape reshard rev "
    "sharding_constraint squeeze transpose"
)
_BY_NAME = {
    **dict.fromkeys(_PASSING.split(), _PASSED_ON),
    **dict.fromkeys(("random_clone", "random_fold_in", "random_seed", "random_wrap", "select_n"), _NEW),
    **dict.fromkeys(("eq", "ne", "random_unwrap", "inspect_sharding"), _NOTHING),
    "assert_consumed_value": _PASSED_ON,
    "consume": KeyReuseSignature(KeySink(0), KeyForward(0, 0)),
    "random_bits": KeyReuseSignature(KeySink(0)),
    "random_split": KeyReuseSignature(KeySink(0), KeySource(0)),
    "dynamic_update_slice": KeyReuseSignature(KeySink(1), KeyForward(0, 0)),
    "scatter": KeyReuseSignature(KeySink(2), KeyForward(0, 0)),
}
"""What ``select_n`` gives counts as new: where a loop is over for some of its examples, it keeps their last keys."""


def _signature(eqn: Eqn) -> tuple[KeyReuseSignature, Sequence[Any]]:
    """With constants that follow the operands."""
    rule = _RULES.get(eqn.primitive)
    if rule is not None:
        return rule(eqn), ()
    programs = [p for p in sub_jaxprs(eqn) if len(p.in_avals) == len(eqn.invars)]
    if len(programs) == 1:
        return _of_call(eqn, programs[0])
    found = _BY_NAME.get(eqn.primitive.name) or _BY_STRUCTURE.get(eqn.primitive.name, _unknown)
    found = found if isinstance(found, KeyReuseSignature) else found(eqn)
    keys = {n for n, x in enumerate(eqn.invars) if is_key(x)}
    return KeyReuseSignature(*(p for p in found._parts if not isinstance(p, KeySink) or p.idx in keys)), ()


def _of_call(eqn: Eqn, program: ClosedJaxpr) -> tuple[KeyReuseSignature, Sequence[Any]]:
    """A backward pass computes again what the forward pass did, with the keys of that."""
    if eqn.params.get("differentiated"):
        return _NOTHING, ()
    use = key_use(program)
    return use.signature, (*program.consts, *use.held)


def _unknown(eqn: Eqn) -> KeyReuseSignature:
    """It consumes all that it is given, and makes no keys."""
    return KeyReuseSignature(*map(KeySink, range(len(eqn.invars))))


def _slice(eqn: Eqn) -> KeyReuseSignature:
    starts, limits = eqn.params["start_indices"], eqn.params["limit_indices"]
    mask = np.zeros(eqn.invars[0].aval.shape, bool)
    mask[tuple(map(slice, starts, limits, eqn.params["strides"] or (1,) * len(starts)))] = True
    return KeyReuseSignature(KeySink(0, mask), KeySource(0))


def _put_together(eqn: Eqn) -> KeyReuseSignature:
    return KeyReuseSignature(*map(KeySink, range(len(eqn.invars))), *map(KeySource, range(len(eqn.outvars))))


_BY_STRUCTURE: dict[str, Callable[[Eqn], KeyReuseSignature]] = {
    "slice": _slice,
    "concatenate": _put_together,
    "sort": _put_together,
    "split": _put_together,
}


# --- branches and loops -----------------------------------------------------------------------------------------------


def _inside(program: ClosedJaxpr) -> KeyReuseSignature:
    """Without what it closes over."""
    signature, count = key_use(program).signature, len(program.in_avals)
    at = lambda p: p.in_idx if isinstance(p, KeyForward) else p.idx
    return KeyReuseSignature(*(p for p in signature._parts if isinstance(p, KeySource) or at(p) < count))


def _cond(eqn: Eqn) -> KeyReuseSignature:
    """What any branch consumes is, and what all make is new."""
    branches = [_inside(b) for b in eqn.params["branches"]]
    sinks: dict[int, list[Mask]] = {}
    for sink in (s for b in branches for s in b.sinks):
        sinks.setdefault(sink.idx + 1, []).append(sink.mask)
    sources = set.intersection(*(set(b.sources) for b in branches))
    forwards = set.intersection(*(set(b.forwards) for b in branches))
    united = (KeySink(n, reduce(np.logical_or, masks)) for n, masks in sinks.items())
    return KeyReuseSignature(*united, *sources, *(KeyForward(f.in_idx + 1, f.out_idx) for f in forwards))


def _scan(eqn: Eqn) -> KeyReuseSignature:
    loop = ScanParts.of(eqn.params)
    body = _inside(loop.jaxpr)
    _check_turns("scan body", eqn, body, body, loop.num_consts, loop.num_carry)
    return body


def _while(eqn: Eqn) -> KeyReuseSignature:
    loop = WhileParts(eqn.params)
    cond, body = _inside(loop.cond), _inside(loop.body)
    carried = len(eqn.outvars)
    for name, signature, count in zip(("cond", "body"), (cond, body), loop.sizes, strict=True):
        _check_turns(f"while_loop {name}", eqn, signature, body, count, carried)
    used = [{s.idx - n for s in p.sinks} for p, n in zip((cond, body), loop.sizes, strict=True)]
    if used[0] & used[1]:
        raise KeyReuseError(f"while_loop cond and body functions both use the same key: {cond}, {body}.{_at(eqn)}")
    shift = loop.sizes[0]
    sinks = (KeySink(s.idx + shift, s.mask) for s in body.sinks)
    passed = (KeyForward(f.in_idx + shift, f.out_idx) for f in body.forwards)
    return KeyReuseSignature(*sinks, *body.sources, *passed)


def _check_turns(
    what: str, eqn: Eqn, once: KeyReuseSignature, body: KeyReuseSignature, consts: int, carried: int
) -> None:
    """Raises unless what a turn consumes is there anew for the next."""
    new = {s.idx for s in body.sources}
    for sink in once.sinks:
        at = sink.idx - consts
        if at < 0:
            why = "because key constants are repeatedly consumed"
        elif at < carried and at not in new:
            why = "because consumed inputs don't match sourced outputs"
        else:
            continue
        raise KeyReuseError(f"{what} function leads to key reuse when repeatedly executed, {why}: {once}.{_at(eqn)}")


_RULES: dict[Primitive, Callable[[Eqn], KeyReuseSignature]] = {
    cond_p: _cond,
    scan_p: _scan,
    while_p: _while,
    **dict.fromkeys(CALLBACKS, lambda eqn: _NOTHING),
}
