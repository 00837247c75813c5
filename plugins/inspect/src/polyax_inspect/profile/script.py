"""Runs a script as ``python script.py`` would, up to its exit status."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

INTERRUPTED = 130


class Ended(NamedTuple):
    """A script that has ended: its status, and what keeps its values alive."""

    status: int
    values: Any


def run(script: Path, arguments: Sequence[str]) -> Ended:
    """Errors of the script are shown as they would be, and are what its status tells."""
    with _in_its_place(script, arguments):
        try:
            return Ended(0, runpy.run_path(str(script), run_name="__main__"))
        except SystemExit as e:
            return Ended(_status(e.code), e)
        except BaseException as e:  # an interrupt, too: what has happened till then is worth a report
            shown = e.with_traceback(_from(script, e.__traceback__))
            sys.excepthook(type(e), shown, shown.__traceback__)
            return Ended(INTERRUPTED if isinstance(e, KeyboardInterrupt) else 1, e)


@contextmanager
def _in_its_place(script: Path, arguments: Sequence[str]) -> Generator[None]:
    """What a script sees of how it was started."""
    argv, path = sys.argv, sys.path[:]
    sys.argv, sys.path[0] = [str(script), *arguments], str(script.resolve().parent)
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


def _status(code: Any) -> int:
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


def _from(script: Path, traceback: TracebackType | None) -> TracebackType | None:
    """The traceback from the script's own frame on; none for one that can't be compiled."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename != str(script):
        traceback = traceback.tb_next
    return traceback
