"""The on-disk cache of compiled code: bytes by key, private to the user, bounded, safe against damage.

An entry is one JSON line (what it is, how long, its checksum) and then raw bytes; nothing is ever unpickled.
Must not know what the bytes mean: a kind of code brings its own key, with everything in it that the code depends on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import stat
import tempfile
import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from polyax.ir.config import config
from polyax.runtime.contract.tracebacks import warn_user

FORMAT = 1
MAX_BYTES = 512 * 2**20
"""Size at which the entries of a kind that were not used for longest are deleted, down to three quarters of it."""


@dataclass(frozen=True)
class CacheStats:
    """Of this process: look-ups that found an entry or did not, entries written, and damaged ones met."""

    hits: int
    misses: int
    writes: int
    damaged: int


def cache_root() -> Path:
    """``config.cache_dir``, else ``$XDG_CACHE_HOME/polyax``, else ``~/.cache/polyax``."""
    if config.cache_dir:
        return Path(config.cache_dir)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "polyax"


def why_no_cache(root: Path) -> str | None:
    """Why compiled code can't be kept in ``root``: code that others can write would be run as ours."""
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        found, link = root.stat(), root.lstat()
    except OSError as e:
        return f"it can't be made: {e}"
    if found.st_uid != os.geteuid():
        return f"it belongs to user id {found.st_uid}, not to you ({os.geteuid()})"
    if link.st_uid not in (os.geteuid(), 0):
        return f"it is a link of user id {link.st_uid}, who can turn it elsewhere"
    if stat.S_IMODE(found.st_mode) & 0o022:
        return f"others can write to it (mode {stat.S_IMODE(found.st_mode):04o}); chmod 700 makes it yours alone"
    if not os.access(root, os.W_OK | os.X_OK):
        return "you can't write to it"
    open_to_all = next((p for p in root.resolve().parents if _lets_all_rename(p)), None)
    return f"everybody can put another in its place: {open_to_all} lacks the sticky bit" if open_to_all else None


def _lets_all_rename(folder: Path) -> bool:
    """Whether everybody can rename what is there: not so in /tmp, where each renames only what is his."""
    mode = folder.stat().st_mode
    return bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX


@lru_cache(None)
def _checked_directory(root: Path, kind: str) -> Path | None:
    reason = why_no_cache(root) or why_no_cache(root / kind)
    if reason is None:
        return root / kind
    warn_user(
        f"Compiled code is not kept on disk in {root}: {reason}. "
        "Name another directory with POLYAX_CACHE_DIR, or switch this off with POLYAX_COMPILATION_CACHE=0."
    )
    return None


def forget_directories() -> None:
    """Asks of directories anew whether code can be kept in them."""
    _checked_directory.cache_clear()


def _encode(key: str, data: bytes) -> bytes:
    header = {"format": FORMAT, "key": key, "length": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return json.dumps(header).encode() + b"\n" + data


def _decode(key: str, entry: bytes) -> bytes | None:
    """The data of an entry; None if it is damaged or something else."""
    line, _, data = entry.partition(b"\n")
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):  # JSON can be nested deeper than Python reads
        return None
    expected = {"format": FORMAT, "key": key, "length": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return data if header == expected else None


class DiskCache:
    """Compiled code of one kind (``cpu-objects``, ``hello_c``).

    >>> cache = DiskCache("doctest")
    >>> cache.put("the source and all that its code depends on", b"code")
    >>> cache.get("the source and all that its code depends on")
    b'code'
    """

    def __init__(self, kind: str, max_bytes: int = MAX_BYTES) -> None:
        self.kind = kind
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._counts = {"hits": 0, "misses": 0, "writes": 0, "damaged": 0}
        self._total: int | None = None  # bytes on disk, as far as this process knows
        self._unseen = random.randrange(self._slack + 1)  # bytes written since somebody looked, as far as one can guess
        CACHES[kind] = self

    @property
    def _slack(self) -> int:
        """By how much a cache may be larger than it should be before somebody looks. To look takes longer the more
        entries there are (a fifth of a second for 40,000), so what is written pays for it, not each process."""
        return self.max_bytes // 16

    def directory(self) -> Path | None:
        """Where entries are; None while the cache is off or was refused."""
        return _checked_directory(cache_root(), self.kind) if config.compilation_cache else None

    def get(self, key: str) -> bytes | None:
        """What was put under ``key``; None if there is nothing, or if it is damaged."""
        directory = self.directory()
        if directory is None:
            return None
        path = directory / _file_name(key)
        try:
            entry = _read(path, self.max_bytes)
        except OSError:
            return self._count("misses")
        data = None if entry is None else _decode(key, entry)
        if data is None:
            self._count("damaged")
            return self._count("misses")
        with contextlib.suppress(OSError):  # pruned by another process meanwhile: we have the data
            os.utime(path)
        self._count("hits")
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keeps ``data`` under ``key``, replacing what was there. A full disk is no error: it costs time, later."""
        directory = self.directory()
        if directory is None:
            return
        entry = _encode(key, data)
        try:
            _write_atomically(directory, _file_name(key), entry)
        except OSError as e:
            warn_user(f"Compiled code could not be kept in {directory}: {e}")
            return
        self._count("writes")
        self._bound(directory, len(entry))

    def stats(self) -> CacheStats:
        with self._lock:
            return CacheStats(**self._counts)

    def _count(self, what: str) -> None:
        with self._lock:
            self._counts[what] += 1

    def _bound(self, directory: Path, added: int) -> None:
        with self._lock:
            self._unseen += added
            if self._total is not None:
                self._total += added
            if self._unseen > self._slack if self._total is None else self._total > self.max_bytes:
                self._total = _prune(directory, self.max_bytes)


CACHES: dict[str, DiskCache] = {}
"""The caches of this process by kind, for ``python -m polyax info``."""


def _file_name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:40]


def _read(path: Path, most: int) -> bytes | None:
    """A file's bytes; None if it is none, or longer than any entry is. A pipe or a device would have us wait, or have
    no end, so nothing is read before it is known what was opened."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        found = os.fstat(file.fileno())
        return file.read() if stat.S_ISREG(found.st_mode) and found.st_size <= most else None


def _write_atomically(directory: Path, name: str, entry: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=directory, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(entry)
        os.replace(temporary, directory / name)
    except BaseException:
        os.unlink(temporary)
        raise


def _prune(directory: Path, max_bytes: int) -> int:
    """Deletes the entries used longest ago if there are more than ``max_bytes``; returns the bytes that remain."""
    entries = sorted(_entries(directory))
    total = sum(size for _, size, _ in entries)
    if total <= max_bytes:
        return total
    for _, size, path in entries:
        if total <= max_bytes * 3 // 4:
            break
        with contextlib.suppress(OSError):  # another process was faster
            os.unlink(path)
        total -= size
    return total


def _entries(directory: Path) -> list[tuple[int, int, str]]:
    """(time of last use, size, path) of each entry."""
    found: list[tuple[int, int, str]] = []
    with os.scandir(directory) as files:
        for file in files:
            with contextlib.suppress(OSError):
                status = file.stat()
                found.append((status.st_mtime_ns, status.st_size, file.path))
    return found
