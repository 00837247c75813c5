"""The memory that notes are written to, and whom native code asks about threads and code that it meets."""

from __future__ import annotations

import ctypes
import functools
import mmap
import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import NamedTuple

import numpy as np

from polyax.ir.source import is_internal
from polyax_cpu.notes.calls import CALLED, SIZE, SLOTS
from polyax_cpu.notes.native import ANCHORED, CURRENT, HEAD, WORD
from polyax_cpu.records import NativeAnchor, NativeNote, NativeNotes

KEPT = 1 << 20
"""Words that a process keeps from trace to trace."""
_SIZES = {CALLED: SIZE, ANCHORED: ctypes.sizeof(NativeAnchor) // WORD}
_ENDED = NativeNote.ended.offset // WORD

codes: dict[int, CodeType] = {}
"""Code by its address. None that was met is forgotten, as notes and tables don't hold it."""
_meet: list[Callable[[], object]] = []


def _meet_code(code: CodeType) -> bool:
    codes[id(code)] = code
    return is_internal(code.co_filename)


def _meet_thread() -> None:
    for meet in _meet:
        meet()


def _room(words: int) -> mmap.mmap:
    """Memory that begins as zeros and is taken as it is used; less, where a process may not have as much."""
    try:
        return mmap.mmap(-1, words * WORD, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        if words <= KEPT:
            raise
        return _room(words // 8)


class Note(NamedTuple):
    """Where a note stands, what it is of, and its ``number``: of steps, or one below 0 that tells its kind."""

    place: int
    what: int
    number: int

    @property
    def end(self) -> int:
        return self.place + (HEAD + self.number if self.number >= 0 else _SIZES[self.number])


class Notebook:
    """One for all traces, as a run that is under way when one ends still writes there. Later ones get what lies behind
    it until it has ended."""

    def __init__(self, capacity: int) -> None:
        self._bytes = _room(capacity)
        self.words = memoryview(self._bytes).cast("q")
        self.array = np.frombuffer(self._bytes, np.int64)
        self._tables = [(ctypes.c_int64 * SLOTS)() for _ in ("threads", "codes")]
        tables = map(ctypes.addressof, self._tables)
        words, met = (self.array.ctypes.data, len(self.words)), (id(_meet_thread), id(_meet_code))
        self.record = NativeNotes(*words, 0, 0, 0, *tables, *met)
        self._start = 0
        self._under_way: list[Note] = []

    @property
    def used(self) -> int:
        return min(self.record.used, self.record.capacity)

    def begin(self, meet_thread: Callable[[], object]) -> None:
        """From now on native code notes what it runs. ``meet_thread`` is called by each thread that makes calls."""
        still = [note for note in self._under_way if not self.steps_ended(note)]
        for note in set(self._under_way).difference(still):
            self.array[note.place : note.end] = 0
        self._under_way = still
        self._start = self.record.used = max((note.end for note in self._under_way), default=0)
        self.record.lost = 0
        ctypes.memset(self._tables[0], 0, ctypes.sizeof(self._tables[0]))
        _meet[:] = [meet_thread]
        CURRENT.value = ctypes.addressof(self.record)

    def end(self) -> None:
        CURRENT.value = None
        _meet.clear()

    def notes(self) -> Iterator[Note]:
        place, used = self._start, self.used
        while place + HEAD <= used and self.words[place]:  # else somebody has taken room and not written there yet
            yield (note := Note(place, self.words[place], self.words[place + 1]))
            place = note.end

    def began(self, note: Note) -> int:
        """When a run or a call began, by the clock of notes."""
        return self.words[note.end - 2 if note.number == CALLED else note.place + HEAD - 1]

    def steps_ended(self, note: Note) -> int:
        """How many steps of a run have; 0 while it is under way."""
        return self.words[note.place + _ENDED]

    def clear(self) -> None:
        """Forgets all notes. Those of runs that are under way are remembered by where they stand."""
        self._under_way += [n for n in self.notes() if n.number > 0 and not self.steps_ended(n)]
        end = self.used
        if sys.platform == "linux" and end > KEPT:  # elsewhere memory that is given back comes as it was
            self._bytes.madvise(mmap.MADV_DONTNEED, KEPT * WORD, (self.record.capacity - KEPT) * WORD)
            end = KEPT
        self.array[self._start : end] = 0


@functools.cache
def notebook(capacity: int) -> Notebook:
    return Notebook(capacity)
