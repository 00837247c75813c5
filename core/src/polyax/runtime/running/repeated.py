"""Eager calls of library functions that come again: the programs that they ran are run again, by one native call.

A call is known by its function, the types of its arrays, and the values of all else. When it has come a few times, it
is noted while it runs as ever: which programs it runs on which values. Their chain is what later calls run, so that
they give the same bits. Not repeated is what reads values, warns, or gives anything but what these programs made.
"""

from __future__ import annotations

import enum
import functools
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.primitive import ambient
from polyax.runtime.arrays import guards
from polyax.runtime.arrays.array import Array
from polyax.runtime.contract import questions
from polyax.runtime.contract.backend import ChainLink, Device
from polyax.runtime.contract.calls import NativeCall, later
from polyax.runtime.contract.tracebacks import show_user_frames
from polyax.runtime.running.programs import Constant, Program, placed, seat_of
from polyax.runtime.running.whole import QuickCalls, native_call
from polyax.trace.calls import Fixed
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten

BEFORE = 2
"""How many times a call comes before it is noted."""
PATIENCE, MADE_UP = 64, 16
"""How many calls of a function are looked at in vain before nobody looks any more. A kind of calls that can be repeated
makes up for several."""
KEPT = 512
"""How many kinds of calls a function knows at most."""
UNREADY = -50
"""Where counting begins again while there is no native code yet."""

_PLAIN = {bool, int, float, str, types.EllipsisType}
_TYPES = (bool, int, float, complex, np.generic, slice)
_NAMES = (np.dtype, np.integer, np.bool_, enum.Enum)
_CONTAINERS = {None, tuple, list, dict, type(None)}


Note = tuple[Program | None, Sequence[Any], Sequence[Any]]
"""A program that an eager call ran, with what, and what that made; without a program, something that is always so."""


class Kind(NamedTuple):
    """What tells calls of a function apart."""

    settings: int
    tree: PyTreeDef
    leaves: tuple[Any, ...]


def repeating(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of public functions: eager calls that come again are native ones, and errors show the user's frames
    alone, as with ``api_boundary``. ``fun`` has to depend on nothing but its arguments and ``config``."""
    calls = EagerCalls(fun)
    quick = calls.quick

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            if ambient.trace is not None or ambient.applied is not None:
                return fun(*args, **kwargs)
            if guards.on and guards.watched("host_to_device"):
                return fun(*args, **kwargs)
            settings = config.call_key()
            first = quick.own.get(settings)
            if first is not None:
                made = first[0](args, kwargs)
                if made is NotImplemented and len(first) > 1:
                    made = quick.others(settings, args, kwargs)
                if made is not NotImplemented:
                    return made
            return calls.usual(args, kwargs) if calls.patience > 0 else fun(*args, **kwargs)
        except Exception as e:
            show_user_frames(e)
            raise

    return call


class EagerCalls:
    """Those of one function: how often each kind came, and what runs it."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun
        self.name = getattr(fun, "__name__", "call")
        self.quick = QuickCalls()
        self.patience = PATIENCE
        self._known: dict[Kind, int | NativeCall | None] = {}
        _every.add(self)

    def usual(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that none of the quick ones can run."""
        leaves, tree = tree_flatten((args, kwargs))
        if not _CONTAINERS.issuperset([e[0] for e in tree.entries]) or not all(map(_is_simple, leaves)):
            self.patience -= 1
            return self.fun(*args, **kwargs)
        what = [(x._seat, x.aval) if type(x) is Array else (type(x), x) for x in leaves]
        kind = Kind(config.call_key(), tree, tuple(what))
        found = self._known.get(kind, 0)
        if isinstance(found, int):
            if found < BEFORE:
                self._count(kind, found)
                return self.fun(*args, **kwargs)
            return self._note(kind, leaves)
        made = NotImplemented if found is None else found(args, kwargs)
        if made is NotImplemented or found is None:
            self.patience -= 1
            return self.fun(*args, **kwargs)
        self.quick.promote(kind.settings, found)
        return made

    def _count(self, kind: Kind, before: int) -> None:
        self.patience -= 1
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[kind] = before + 1

    def _note(self, kind: Kind, leaves: Sequence[Any]) -> Any:
        """Runs a call, and learns how to repeat it."""
        own = _told_apart(leaves)
        args, kwargs = tree_unflatten(kind.tree, own)
        notes: list[Note | None] = []
        ambient.applied = notes
        try:
            result = self.fun(*args, **kwargs)
        finally:
            ambient.applied = None
        found = _repetition(notes, own, kind.tree, result, ("operation", self.name))
        self._known[kind] = UNREADY if found is later else found
        if found is not None and found is not later:
            self.patience += MADE_UP
            self.quick.promote(kind.settings, found)
        return result

    def clear(self) -> None:
        self.quick.clear()
        self._known.clear()
        self.patience = PATIENCE


_every: weakref.WeakSet[EagerCalls] = weakref.WeakSet()


def clear() -> None:
    """Forgets all that was learned."""
    for calls in list(_every):
        calls.clear()


def _is_simple(x: Any) -> bool:
    """Arrays on one device, and values that are all that there is to know of them."""
    kind = type(x)
    if kind is Array:
        return x._seat is not None
    if kind in _PLAIN or isinstance(x, _NAMES):
        return True
    return isinstance(x, type) and (issubclass(x, _TYPES) or hasattr(x, "dtype"))


def _told_apart(leaves: Sequence[Any]) -> list[Any]:
    """An array that comes twice is two arrays, since another call may have two."""
    seen: set[int] = set()
    own: list[Any] = []
    for x in leaves:
        again = type(x) is Array and id(x) in seen
        seen.add(id(x))
        own.append(_same(x) if again else x)
    return own


def _same(x: Array) -> Array:
    return Array(x.aval, x.buffer, x._seat)


def _repetition(
    notes: Sequence[Note | None], leaves: Sequence[Any], tree: PyTreeDef, result: Any, told: tuple[str, str]
) -> NativeCall | None:
    """What does the same on other arrays, if it is known what was done. ``told``: what traces call it."""
    made, out_tree = tree_flatten(result)
    known = [n for n in notes if n is not None]
    programs = [p for p, _, _ in known if p is not None]
    if not programs or len(known) < len(notes) or not all(map(_is_plain, made)):
        return None
    device = programs[0].device
    if any(type(p) is not Program or p.special or p.device is not device for p in programs):
        return None
    chain = _Chain(known, [x for x in leaves if type(x) is Array])
    wanted = [chain.numbers.get(id(x), -1) for x in made]
    if any(x._seat is not seat_of(device, leaves) for x in made):
        return None
    if not chain.complete or min(wanted, default=-1) < len(chain.inputs):
        return None
    executable = questions.chained(programs[0].executable, device, chain.links, chain.inputs, wanted)
    if executable is None:
        return None
    inputs, outputs = ([(a, device) for a in avals] for avals in (chain.inputs, [x.aval for x in made]))
    whole = tree_unflatten(tree, [x if type(x) is Array else Fixed(type(x), x) for x in leaves])
    with guards.embedded():
        constants = [_buffer(x, a, device) for x, a in zip(chain.constants, chain.inputs)]
    program = Program(programs[-1].name, executable, inputs, outputs, device)
    return native_call(program, constants, whole, out_tree, told=told)


def _buffer(x: Any, aval: ShapedArray, device: Device) -> Any:
    return x.buffer if type(x) is Constant else placed(x, aval, device)


def _is_plain(x: Any) -> bool:
    """Whether it is an array of which nothing was noted."""
    return type(x) is Array and x._seat is not None and not hasattr(x, "_sharding")


class _Chain:
    """Programs and the values between them: constants, then arguments, then what each program made."""

    def __init__(self, notes: Sequence[Note], arrays: Sequence[Array]) -> None:
        always = {id(x) for program, _, made in notes if program is None for x in made}
        is_constant = lambda x: type(x) is not Array or id(x) in always
        pairs = [(x, a) for p, args, _ in notes if p is not None for x, (a, _) in zip(args, p.inputs) if is_constant(x)]
        self.constants = [x for x, _ in pairs]
        self.inputs = [*[a for _, a in pairs], *[x.aval for x in arrays]]
        self.numbers = {id(x): len(pairs) + n for n, x in enumerate(arrays)}
        self.links: list[ChainLink] = []
        constant, count = iter(range(len(pairs))), len(self.inputs)
        for program, args, made in notes:
            if program is not None:
                operands = [next(constant) if is_constant(x) else self.numbers.get(id(x), -1) for x in args]
                self.links.append(ChainLink(program.executable, operands))
                self.numbers |= {id(x): count + n for n, x in enumerate(made)}
                count += len(made)

    @property
    def complete(self) -> bool:
        """Whether all values are constants, arguments, or were made by one of the programs."""
        return all(-1 not in link.operands for link in self.links)
