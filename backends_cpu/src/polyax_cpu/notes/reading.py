"""What native code ran while a trace was taken, told when it ends.

Steps are known by the address of their table. Knows traces by ``probes`` alone.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from polyax.runtime.contract.probes import Telling, ToldPart, declare
from polyax_cpu import pool
from polyax_cpu.notes.native import HEAD, JOURNAL, WORD
from polyax_cpu.records import NativeJournal
from polyax_kernels.plan.plan import Step
from polyax_kernels.run.telling import told_part

CAPACITY = 1 << 23
"""Words for all notes of a trace: programs of ten steps can run half a million times. Memory is taken as it is used."""

noting: RunNotes | None = None


class Known:
    """What is known of a table of steps. ``device``: of those that Python calls without a queue, the device's name."""

    def __init__(self, sources: Sequence[Step], device: str | None = None) -> None:
        self.sources, self.device = sources, device

    @cached_property
    def parts(self) -> list[ToldPart]:
        return [told_part(step) for step in self.sources]


_known: weakref.WeakValueDictionary[int, Known] = weakref.WeakValueDictionary()


def know(address: int, known: Known) -> Known:
    """Says what the table at ``address`` is, as long as the result lives."""
    _known[address] = known
    if noting is not None:
        noting.kept.append(known)
    return known


class Run(NamedTuple):
    known: Known
    thread: int
    times: list[int]
    """The beginning, and the end of each step."""


class RunNotes:
    """The notes of a trace."""

    _words: ctypes.Array[ctypes.c_int64] | None = None
    """One for all: a run that is under way when a trace ends still writes there."""

    def __init__(self, telling: Telling) -> None:
        if RunNotes._words is None:
            RunNotes._words = (ctypes.c_int64 * CAPACITY)()
        self.words = RunNotes._words
        self.record = NativeJournal(ctypes.addressof(self.words), CAPACITY, 0)
        self.kept = list(_known.values())  # no table is made where another one was
        _set_journal(ctypes.addressof(self.record))
        telling.at_end(lambda: self.end(telling))

    def end(self, telling: Telling) -> None:
        _set_journal(None)
        for known, thread, times in self.runs():
            telling.ran(thread, known.device, known.parts, times)
        ctypes.memset(self.words, 0, WORD * min(self.record.used, CAPACITY))
        _ended.append(self.record)

    def runs(self) -> Iterator[Run]:
        """Those that have ended."""
        place, used = 0, min(self.record.used, CAPACITY)
        while place + HEAD <= used:
            steps, count, thread, began = self.words[place : place + HEAD]
            ends = self.words[place + HEAD : place + HEAD + count]
            place += HEAD + count
            known = _known.get(steps)
            if steps == 0:  # a run that has taken room and not written there yet
                return
            if known is not None and len(ends) == count and all(ends):
                yield Run(known, thread, [began, *ends])


_ended: list[NativeJournal] = []


def _set_journal(address: int | None) -> None:
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(pool.symbols()[JOURNAL])(address)


declare(sys.modules[__name__], "noting", lambda _, telling: RunNotes(telling))
