"""What native code ran while a trace was taken, told when it ends.

Steps are known by the address of their table. Knows traces by ``probes`` alone.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from polyax.ir.source import Place
from polyax.runtime.contract.probes import Telling, ToldPart, declare
from polyax_cpu import pool
from polyax_cpu.notes.calls import CALLED
from polyax_cpu.notes.clock import Anchor, NoteClock, anchors
from polyax_cpu.notes.native import ANCHORED, HEAD
from polyax_cpu.notes.notebook import Note, codes, notebook
from polyax_kernels.plan.plan import Step
from polyax_kernels.run.telling import told_part

CAPACITY = 1 << 26
"""Words for all notes of a trace: two million calls of programs of twenty steps. Memory is taken as it is used."""

noting: Notes | None = None


class Known:
    """What is known of a table of steps. ``device``: of those that Python calls without a queue, the device's name.
    ``call``: what traces call those that are a call of the user's."""

    def __init__(self, sources: Sequence[Step], device: str | None = None, call: tuple[str, str] | None = None) -> None:
        self.sources, self.device, self.call = sources, device, call

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


class Notes:
    """The notes of a trace."""

    def __init__(self, telling: Telling) -> None:
        self.telling = telling
        self.kept = list(_known.values())  # no table is made where another one was
        self.book, self._anchors = notebook(CAPACITY), anchors(pool.symbols())
        self.book.begin(telling.meet_thread)
        telling.at_end(self.end)

    def end(self) -> None:
        self.book.end()
        self._anchors += [*self._noted_anchors(), *anchors(pool.symbols())]
        times = NoteClock(self._anchors).times(self.book.array[: self.book.used])
        for note in self.book.notes():
            known = _known.get(note.what)
            if known is not None and self.book.began(note) >= self._anchors[0][0]:
                self._tell(note, known, times)
        self.book.clear()
        if lost := self.book.record.lost:
            text = f"polyax.profiler: there was no room for {lost:,} notes of what ran: take shorter traces"
            warnings.warn(text, stacklevel=2)

    def _noted_anchors(self) -> Iterator[Anchor]:
        words = self.book.words
        for note in self.book.notes():
            if note.number == ANCHORED:
                before, time, after = words[note.place + 2 : note.end]
                yield before, time, after

    def _tell(self, note: Note, known: Known, times: np.ndarray) -> None:
        thread = self.book.words[note.place + 2]
        if note.number == CALLED and known.call is not None:
            start, end = times[note.end - 2 : note.end].tolist()
            self.telling.called(thread, start, end, *known.call, self._place(note))
        elif note.number > 0 and (ended := self.book.steps_ended(note)):
            first = note.place + HEAD
            self.telling.ran(thread, known.device, known.parts, times[first - 1 : first + ended].tolist())

    def _place(self, note: Note) -> Place | None:
        code, instruction = self.book.words[note.place + 3 : note.place + 5]
        return (codes[code], instruction) if code else None


declare(sys.modules[__name__], "noting", lambda _, telling: Notes(telling))
