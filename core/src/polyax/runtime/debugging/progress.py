"""Tells how far what takes long is, while it lasts: compilations, and loops that count their turns.

Off unless a block asks. Bars are tqdm's, in terminals as in notebooks; this only knows what there is to count.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

PAUSE = 0.2
"""Seconds between two looks at the clock."""


class Turns:
    """A loop of a program; each run of it has ``total`` turns."""

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total = name, total

    def advance(self, count: int) -> None:
        if Shown.board is not None:
            Shown.board.advance(self, count)


class Board:
    """The bars of a block.

    Args:
      after: seconds that a compilation may take before it's told of.
      file: where bars are written in terminals; by default standard error.
    """

    def __init__(self, after: float, file: Any = None) -> None:
        self._bar, self._after, self._file = _bars(), after, file
        self._loops: dict[Turns, Any] = {}
        self._lock = threading.Lock()

    @contextmanager
    def compiling(self, title: str) -> Generator[None]:
        done = threading.Event()
        thread = threading.Thread(target=self._tell, args=(title, done), name="polyax-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _tell(self, title: str, done: threading.Event) -> None:
        if done.wait(self._after):
            return
        with self._bar(desc=f"compiling {title}", bar_format="{desc}: {elapsed}", file=self._file) as bar:
            while not done.wait(PAUSE):
                bar.refresh()

    def advance(self, turns: Turns, count: int) -> None:
        with self._lock:
            if turns not in self._loops:
                self._loops[turns] = self._bar(desc=turns.name, total=turns.total, unit="turn", file=self._file)
            bar = self._loops[turns]
            bar.update(count)
            if bar.n >= turns.total:  # the next run begins another one
                self._loops.pop(turns).close()

    def close(self) -> None:
        with self._lock:
            while self._loops:
                self._loops.popitem()[1].close()


class Shown:
    """The board of the innermost block, in all threads: programs count from those of their devices."""

    board: Board | None = None


def compiling(title: str) -> AbstractContextManager[None]:
    """A block in which ``title`` is compiled."""
    return nullcontext() if Shown.board is None else Shown.board.compiling(title)


@contextmanager
def shown_on(board: Board) -> Generator[None]:
    before, Shown.board = Shown.board, board
    try:
        yield
    finally:
        Shown.board = before
        board.close()


def watched_by_a_person() -> bool:
    """Whether standard error is a terminal, or this is a notebook."""
    return "ipykernel" in sys.modules or sys.stderr.isatty()


def _bars() -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError as e:
        raise ImportError("polyax.debug.progress draws with tqdm, which isn't installed: `pip install tqdm`") from e
    return tqdm
