"""The form of a saved program: a short head, a JSON text, and the bytes that the text refers to. Nothing in it is run.

Must not know what the text says.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from typing import Any

MAGIC = b"polyax-export\n"
FORM = 1
"""The version of the form that is written. What later versions can't read any more, they refuse by this number."""
OLDEST = 1
_HEAD = struct.Struct("<14sIQQ32s")  # magic, version, bytes of text, bytes after it, SHA-256 of both


class Blobs:
    """Bytes beside the text, each known by its number there."""

    def __init__(self, parts: Sequence[bytes] = ()) -> None:
        self.parts = list(parts)

    def add(self, data: bytes) -> int:
        self.parts.append(data)
        return len(self.parts) - 1


def write(text: dict[str, Any], blobs: Blobs) -> bytes:
    """One file of both."""
    sizes = [len(part) for part in blobs.parts]
    described = json.dumps({**text, "sizes": sizes}, separators=(",", ":"), allow_nan=False).encode()
    after = b"".join(blobs.parts)
    digest = hashlib.sha256(described + after).digest()
    return _HEAD.pack(MAGIC, FORM, len(described), len(after), digest) + described + after


def read(data: Any, kind: str) -> tuple[dict[str, Any], list[bytes]]:
    """The text and the bytes beside it.

    Raises:
      ValueError: the data are no such file, are of another version, or aren't whole.
    """
    data = bytes(data)
    if data[: len(MAGIC)] != MAGIC:
        raise ValueError(f"these {len(data)} bytes are no exported program of polyax: they begin with {data[:14]!r}")
    if len(data) < _HEAD.size:
        raise _cut_short(len(data), _HEAD.size)
    _, version, described, after, digest = _HEAD.unpack_from(data)
    if not OLDEST <= version <= FORM:
        raise ValueError(
            f"the exported program is in version {version} of the form; this polyax reads the versions {OLDEST} to "
            f"{FORM}. Load it with the polyax that wrote it, or export it again."
        )
    body = data[_HEAD.size :]
    if len(body) != described + after:
        raise _cut_short(len(data), _HEAD.size + described + after)
    if hashlib.sha256(body).digest() != digest:
        raise ValueError("the exported program is damaged: its checksum differs from that of its contents")
    text = json.loads(body[:described])
    if text.get("kind") != kind:
        raise ValueError(f"these bytes hold {text.get('kind')!r}, where {kind!r} is expected")
    return text, _cut(body[described:], text["sizes"])


def _cut(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    parts: list[bytes] = []
    start = 0
    for size in sizes:
        parts.append(data[start : start + size])
        start += size
    return parts


def _cut_short(found: int, expected: int) -> ValueError:
    return ValueError(f"the exported program isn't whole: {found} bytes were given, and it has {expected}")
