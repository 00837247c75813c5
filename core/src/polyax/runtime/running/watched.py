"""Programs that look whether a random key that they are given was used before (``debug_key_reuse``)."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax.control.key_uses import KeyUse, Mask, is_key
from polyax.ir.errors import KeyReuseError
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.source import user_source
from polyax.runtime.arrays.array import Array
from polyax.runtime.contract.backend import Seat
from polyax.runtime.running.programs import Program

_used: dict[int, tuple[weakref.ref[Array], Mask, str]] = {}
"""By the ids of arrays of keys: which of these were consumed, and where."""


@dataclass(slots=True)
class KeyWatch(Program):
    """A program of one device that consumes keys or makes them."""

    watched: ClosedJaxpr | None = None
    use: KeyUse | None = None
    eager: bool = False

    @property
    def special(self) -> bool:
        return True

    def run_placed(self, buffers: Sequence[Any], args: Sequence[Any], seat: Seat | None) -> list[Any]:
        assert self.watched is not None and self.use is not None
        count = len(self.watched.consts)
        consts, inputs = (args[:count], args[count:]) if len(args) > len(self.watched.in_avals) else ((), args)
        operands = [*inputs, *consts, *self.use.held]
        what = self.name if self.eager else "jit-compiled function"
        _check(self.use, operands, what)
        outs = Program.run_placed(self, buffers, args, seat)
        _note(self.use, operands, outs)
        return outs


def _check(use: KeyUse, operands: Sequence[Any], what: str) -> None:
    for sink in use.signature.sinks:
        used, where = _state(operands[sink.idx])
        if np.any(np.logical_and(used, sink.mask)):
            hint = f" It was used at {where} first; polyax.random.split makes new ones of a key." if where else ""
            raise KeyReuseError(f"Previously-consumed key passed to {what} at index {sink.idx}.{hint}")


def _note(use: KeyUse, operands: Sequence[Any], outs: Sequence[Any]) -> None:
    here = str(user_source() or "")
    for sink in use.signature.sinks:
        _set(operands[sink.idx], np.logical_or(_state(operands[sink.idx])[0], sink.mask), here)
    new = {s.idx: np.logical_not(s.mask) for s in use.signature.sources}
    passed = {f.out_idx: operands[f.in_idx] for f in use.signature.forwards}
    for n, out in enumerate(outs):
        if n in passed:
            _set(out, *_state(passed[n]))
        else:
            _set(out, new.get(n, True), here)


def _state(x: Any) -> tuple[Mask, str]:
    found = _used.get(id(x))
    return (False, "") if found is None or found[0]() is not x else found[1:]


def _set(x: Any, used: Mask, where: str) -> None:
    if type(x) is Array and is_key(x) and np.any(used):
        number = id(x)
        _used[number] = weakref.ref(x, lambda _: _used.pop(number, None)), used, where
