"""PoCL's folder of compiled programs. PoCL trusts what it finds there: a file that was cut short ends the process.

So the last process that leaves the folder seals what is in it, and the first one that comes deletes what isn't as it
was sealed: what a killed process was writing, what a disk lost, what somebody else put there. Each process that uses
the folder has a marker, which is locked while it lives. Must not know OpenCL.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

MAX_BYTES = 256 * 2**20
"""Size at which the programs that were not used for longest are not kept."""
USED = "last_accessed"
"""PoCL touches this file of a program at each use, and reads nothing from it."""

SEAL, MARKER = "seal.json", "user-"

Seal = dict[str, list[int]]
"""Of the files of a program: size, and when it was written."""


class Kept:
    """``folder``, which has to be the user's alone; markers and the seal stand in another beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._beside = folder.with_name(f"{folder.name}-users")
        self._marker: tuple[int, str] | None = None
        self._process = 0
        self._entering = threading.Lock()

    def enter(self) -> None:
        """From now on this process uses the folder, if it didn't already.

        Raises:
          OSError: files or locks can't be had.
        """
        with self._entering:
            if self._process != os.getpid():
                self._marker = self._marked()
                self._process = os.getpid()

    def leave(self) -> None:
        """It doesn't any more: everything that it has begun to write is written. Not for a fork of it to say."""
        with self._entering:
            if self._marker is None or self._process != os.getpid():
                return
            (handle, path), self._marker, self._process = self._marker, None, 0
            with contextlib.suppress(OSError), self._alone():  # without a seal all is compiled again
                os.unlink(path)
                os.close(handle)
                if not self._markers():  # one that was killed has left its own, and perhaps half of a file
                    self._write_seal()

    def _marked(self) -> tuple[int, str]:
        self._beside.mkdir(mode=0o700, exist_ok=True)
        with self._alone():
            if not any(map(_is_locked, self._markers())):
                self._sweep()
            handle, path = tempfile.mkstemp(dir=self._beside, prefix=MARKER)
            fcntl.flock(handle, fcntl.LOCK_EX)
            return handle, path

    def _markers(self) -> list[Path]:
        return list(self._beside.glob(f"{MARKER}*"))

    @contextlib.contextmanager
    def _alone(self) -> Generator[None]:
        handle = os.open(self._beside / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _sweep(self) -> None:
        sealed = self._sealed()
        for program in _programs(self.folder):
            if sealed.get(_name(program)) != _seal(program):
                shutil.rmtree(program, ignore_errors=True)
        for path in (*self._markers(), *self.folder.glob("tempfile_*")):
            path.unlink(missing_ok=True)

    def _sealed(self) -> dict[str, Any]:
        try:
            found = json.loads((self._beside / SEAL).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write_seal(self) -> None:
        """What isn't in it is deleted by the next who comes."""
        seal: dict[str, Seal] = {}
        left = MAX_BYTES
        for program in sorted(_programs(self.folder), key=_last_use, reverse=True):
            files = _seal(program)
            left -= sum(size for size, _ in files.values())
            if left >= 0:
                seal[_name(program)] = files
        new = self._beside / f"{SEAL}.new"
        new.write_text(json.dumps(seal))
        os.replace(new, self._beside / SEAL)


def _is_locked(marker: Path) -> bool:
    with open(marker, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _programs(folder: Path) -> list[Path]:
    """PoCL spreads them by two letters of a hash."""
    return [program for some in _folders(folder) for program in _folders(some)]


def _folders(folder: Path) -> list[Path]:
    with os.scandir(folder) as found:
        return [Path(entry.path) for entry in found if entry.is_dir(follow_symlinks=False)]


def _name(program: Path) -> str:
    return f"{program.parent.name}/{program.name}"


def _last_use(program: Path) -> float:
    try:
        return (program / USED).lstat().st_mtime
    except OSError:
        return 0.0


def _seal(program: Path) -> Seal:
    """Of all files but the one that is touched at each use."""
    files = (Path(folder, name) for folder, _, names in os.walk(program) for name in names if name != USED)
    return {str(path.relative_to(program)): [(found := path.lstat()).st_size, found.st_mtime_ns] for path in files}
