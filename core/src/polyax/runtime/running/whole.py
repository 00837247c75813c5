"""Calls that an executable takes as users make them: which these are, said in the words of the contract; and the
functions for them, which a jitted function tries before anything else."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.runtime.arrays import guards
from polyax.runtime.arrays.array import Array, is_concrete
from polyax.runtime.contract import questions
from polyax.runtime.contract.calls import CallKind, LeafKind, NativeCall, later
from polyax.runtime.running.programs import Program, seat_of
from polyax.trace.calls import Fixed, Key, UserCall
from polyax.trace.traces import keep
from polyax.trace.tree import PyTreeDef, tree_flatten

Maker = Callable[[UserCall], NativeCall | None]

TRIED = 8
"""How many are tried before what is always right: each takes about a tenth of that."""


class QuickCalls:
    """Those of a function, by the settings that they were made under (``config.call_key()``)."""

    __slots__ = ("_made", "_makers", "own", "waiting")

    def __init__(self) -> None:
        self.own: dict[int, tuple[NativeCall, ...]] = {}
        """The ones to try, in the order in which they were of use. Tuples are never changed: threads share them."""
        self.waiting = False
        """Whether calls have to come here again, since there was nothing yet to run them."""
        self._makers: dict[Key, Maker] = {}
        self._made: dict[Any, NativeCall | None] = {}

    def others(self, settings: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the first of the others that can run this call, or NotImplemented."""
        for call in self.own.get(settings, ())[1:]:
            made = call(args, kwargs)
            if made is not NotImplemented:
                self.promote(settings, call)
                return made
        return NotImplemented

    def learn(self, key: Key, make: Maker, call: UserCall) -> None:
        """``make`` gives functions for calls of this kind, or None. ``call`` is the first one."""
        keep(self._makers, key, make)
        self.met(key, call)

    def met(self, key: Key, call: UserCall) -> None:
        """A call of this kind went the usual way: what can run such calls, if anything, is tried first from now on.

        Equal keys leave open whether a leaf is an array, and where, or a number that would become one.
        """
        settings = config.call_key()
        kind = key, settings, tuple([x._seat if type(x) is Array else type(x) for x in call.leaves])
        if kind not in self._made and key in self._makers:
            made = self._makers[key](call)
            self.waiting = made is later
            if self.waiting:
                return
            keep(self._made, kind, made)
        quick = self._made.get(kind)
        if quick is not None:
            self.promote(settings, quick)

    def promote(self, settings: int, call: NativeCall) -> None:
        """This one is tried first from now on."""
        before = self.own.get(settings, ())
        self.own[settings] = (call, *[c for c in before if c is not call][: TRIED - 1])

    def clear(self) -> None:
        self.own.clear()
        self._makers.clear()
        self._made.clear()


def eager_call(program: Program, args: tuple[Any, ...]) -> NativeCall:
    """What runs a program of one operation on arguments like these, for a list of results, if anything does."""
    outs = tree_flatten([program] * len(program.outputs))[1]  # a program is a leaf, whatever users register
    made = native_call(program, (), (args, {}), outs) or not_this
    program.quick = None if made is later else made
    return made


def not_this(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls of no kind."""
    return NotImplemented


def native_call(
    program: Program,
    consts: Sequence[Any],
    whole: tuple[tuple[Any, ...], dict[str, Any]],
    out_tree: PyTreeDef,
    pinned: bool = False,
    told: tuple[str, str] | None = None,
) -> NativeCall | None:
    """What runs calls like ``whole`` of a program on one device, if there is more to gain than trouble.

    ``consts``: the buffers of its constants; ``pinned``: results are committed, whatever arguments are; ``told``: what
    traces call these calls, a kind and a name.
    """
    outputs = [aval for aval, _ in program.outputs]
    inputs = [aval for aval, _ in program.inputs[len(consts) :]]
    more = config.launch_timeout or program.effects or program.checked is not None or program.large
    if more or type(program) is not Program or any(a.dtype == dtypes.float0 for a in (*inputs, *outputs)):
        return None
    leaves, in_tree = tree_flatten(whole)
    given = [x for x in leaves if type(x) is not Fixed]
    if any(is_concrete(x) and x._device is not program.device for x in given):
        return None
    rest = iter(inputs)
    kinds = [LeafKind(x.type, None, x.value) if type(x) is Fixed else _leaf_kind(x, next(rest)) for x in leaves]
    donated = program.donated[len(program.donated) - len(inputs) :]
    seat = program.device.chosen if pinned else seat_of(program.device, given)
    made = questions.native_call(
        program.executable, program.device, CallKind(seat, in_tree, kinds, consts, out_tree, outputs, donated, told)
    )
    if made is None or made is later or all(map(is_concrete, given)):
        return made
    return functools.partial(_unguarded, made)


def _leaf_kind(x: Any, aval: ShapedArray) -> LeafKind:
    return LeafKind(type(x), aval, seat=x._seat if is_concrete(x) else None)


def _unguarded(call: NativeCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What comes from the host comes to the device, unless somebody wants to know of that."""
    return NotImplemented if guards.on and guards.watched("host_to_device") else call(args, kwargs)
