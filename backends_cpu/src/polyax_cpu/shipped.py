"""Object code that came with the package: of the kernels that everybody needs, for the usual processors.

A first process finds it where nobody's cache has any. Found by the text that it was made of, so that code of another
version is never taken for this one's; ``make wheels`` makes it, a checkout has none.
"""

from __future__ import annotations

import functools
import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path

from polyax_cpu.processors import TARGETS, Host, host, runs

FOLDER = Path(__file__).parent / "objects"


def code(text: str, level: int, straight: bool = True) -> bytes | None:
    """What ``compiler.compile`` of these would give, if it was shipped for such a processor as this one."""
    found = objects()
    return found.get(name_of(text, level, straight)) if found else None


def objects() -> Objects | None:
    """What was shipped for this processor, if anything."""
    return _objects(FOLDER, host())


def name_of(text: str, level: int, straight: bool) -> str:
    return hashlib.sha256(f"{level} {straight} {text}".encode()).hexdigest()[:24]


def write(folder: Path, target: Host, objects: Mapping[str, bytes]) -> None:
    """A file of object code by names; one JSON line says where each lies in what follows."""
    places, packed, end = dict[str, tuple[int, int]](), list[bytes](), 0
    for name, made in sorted(objects.items()):
        packed.append(zlib.compress(made, 9))
        places[name] = end, len(packed[-1])
        end += len(packed[-1])
    folder.mkdir(parents=True, exist_ok=True)
    head = json.dumps(places, separators=(",", ":")).encode()
    _file(folder, target).write_bytes(b"\n".join([head, b"".join(packed)]))


class Objects:
    """Such a file, of which what is asked for is unpacked."""

    def __init__(self, path: Path) -> None:
        head, _, self._packed = path.read_bytes().partition(b"\n")
        self._places: dict[str, tuple[int, int]] = json.loads(head)

    def __len__(self) -> int:
        return len(self._places)

    def get(self, name: str) -> bytes | None:
        if name not in self._places:
            return None
        begin, size = self._places[name]
        return zlib.decompress(self._packed[begin : begin + size])


def _file(folder: Path, target: Host) -> Path:
    return folder / f"{target.triple}.{target.cpu}"


@functools.cache
def _objects(folder: Path, on: Host) -> Objects | None:
    """Those of the best target that runs here, if there is one."""
    files = [_file(folder, target) for target in TARGETS if runs(target, on)]
    return Objects(files[0]) if files and files[0].exists() else None
