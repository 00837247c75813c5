"""Runs a script as ``python script.py`` would, or a module as ``python -m module``, up to its exit status."""

from __future__ import annotations

import runpy
import sys
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import thread as executors
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

INTERRUPTED = 130
_RUNNERS = {__file__, runpy.run_path.__code__.co_filename}
"""Files whose frames a traceback of the script doesn't show."""


class Script(NamedTuple):
    """What is run: a file, or a module by its name."""

    name: str
    is_module: bool = False

    @property
    def kind(self) -> str:
        return "module" if self.is_module else "file"

    def is_there(self) -> bool:
        """Whether it can be found; of a module in a package, whether the package can, since to look further runs it."""
        if self.is_module:
            with _in_its_place(self, ()):
                return find_spec(self.name.partition(".")[0]) is not None
        return Path(self.name).is_file()

    def folder(self) -> Path:
        """Where it imports from first."""
        return Path.cwd() if self.is_module else Path(self.name).resolve().parent

    def run(self) -> dict[str, Any]:
        """Its values."""
        if self.is_module:
            return runpy.run_module(self.name, run_name="__main__", alter_sys=True)
        return runpy.run_path(self.name, run_name="__main__")


class Ended(NamedTuple):
    """A script that has ended: its status, and what keeps its values alive."""

    status: int
    values: Any


def run(script: Script, arguments: Sequence[str]) -> Ended:
    """Errors of the script are shown as they would be, and are what its status tells. Returns when the last thread that
    the script started has ended."""
    before = set(threading.enumerate())
    with _in_its_place(script, arguments):
        ended = _main(script)
        try:
            _wait_for_threads(before)
        except KeyboardInterrupt:
            return Ended(INTERRUPTED, ended.values)
        return ended


def _main(script: Script) -> Ended:
    try:
        return Ended(0, script.run())
    except SystemExit as e:
        return Ended(_status(e.code), e)
    except BaseException as e:  # an interrupt, too: what has happened till then is worth a report
        shown = e.with_traceback(_own(e.__traceback__))
        sys.excepthook(type(e), shown, shown.__traceback__)
        return Ended(INTERRUPTED if isinstance(e, KeyboardInterrupt) else 1, e)


def _wait_for_threads(before: set[threading.Thread]) -> None:
    """Waits for those that Python would wait for. Workers of executors end when the interpreter does."""
    while left := [t for t in set(threading.enumerate()) - before if not t.daemon and t not in _workers()]:
        for thread in left:
            thread.join()


def _workers() -> set[threading.Thread]:
    return set(executors._threads_queues)  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]


@contextmanager
def _in_its_place(script: Script, arguments: Sequence[str]) -> Generator[None]:
    """What a script sees of how it was started."""
    argv, path = sys.argv, sys.path[:]
    sys.argv, sys.path[0] = [script.name, *arguments], str(script.folder())
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


def _status(code: Any) -> int:
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


def _own(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback from the script's own frame on; none for one that can't be compiled."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename in _RUNNERS:
        traceback = traceback.tb_next
    return traceback
