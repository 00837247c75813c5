"""Traces that were written, read again: planes of lines of events."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any

from polyax.profiler.planes import Told, decoded

GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class ProfileEvent:
    """Something that took time."""

    name: str
    start_ns: float
    duration_ns: float
    stats: Sequence[tuple[str, Any]]

    @property
    def end_ns(self) -> float:
        return self.start_ns + self.duration_ns


@dataclass(frozen=True)
class ProfileLine:
    """The events of a thread."""

    name: str
    events: Sequence[ProfileEvent]


@dataclass(frozen=True)
class ProfilePlane:
    """What one process or device did."""

    name: str
    lines: Sequence[ProfileLine]
    stats: Sequence[tuple[str, Any]] = ()


class ProfileData:
    """A trace. ``planes`` are its processes and devices; all is one of these in the format of Chrome."""

    def __init__(self, planes: Sequence[ProfilePlane]) -> None:
        self._planes = planes

    @staticmethod
    def from_file(path: str) -> ProfileData:
        """The trace in a file that ``stop_trace`` wrote, of either format.

        Raises:
          ValueError: it is no such file.
        """
        with open(path, "rb") as f:
            return ProfileData.from_serialized(f.read())

    @staticmethod
    def from_serialized(data: bytes) -> ProfileData:
        """The trace in the bytes of such a file."""
        if not data.startswith(GZIP):
            return ProfileData.from_serialized_xspace(data)
        try:
            return ProfileData(_of_chrome(json.loads(gzip.decompress(data))))
        except (OSError, KeyError, TypeError, ValueError) as e:
            raise ValueError(f"these bytes are no trace of polyax, gzipped JSON in Chrome's format: {e}") from e

    @staticmethod
    def from_serialized_xspace(serialized: bytes) -> ProfileData:
        """The trace in the bytes of a message that XProf reads."""
        try:
            return ProfileData([ProfilePlane(name, list(starmap(_line, found))) for name, found in decoded(serialized)])
        except (IndexError, KeyError, ValueError) as e:
            raise ValueError(f"these bytes are no trace, neither gzipped JSON nor a message of planes: {e!r}") from e

    @property
    def planes(self) -> Iterator[ProfilePlane]:
        return iter(self._planes)

    def find_plane_with_name(self, name: str) -> ProfilePlane | None:
        return next((p for p in self._planes if p.name == name), None)


def _of_chrome(text: dict[str, Any]) -> list[ProfilePlane]:
    told = [e for e in text["traceEvents"] if e["ph"] == "M"]
    threads = {e["tid"]: e["args"]["name"] for e in told if e["name"] == "thread_name"}
    lines = [ProfileLine(name, _events(text["traceEvents"], tid)) for tid, name in threads.items()]
    return [ProfilePlane(e["args"]["name"], lines) for e in told if e["name"] == "process_name"]


def _line(name: str, events: Sequence[Told]) -> ProfileLine:
    return ProfileLine(name, list(starmap(ProfileEvent, events)))


def _events(events: Sequence[dict[str, Any]], thread: int) -> list[ProfileEvent]:
    own = [e for e in events if e["ph"] == "X" and e["tid"] == thread]
    return [
        ProfileEvent(e["name"], e["ts"] * 1e3, e["dur"] * 1e3, (("kind", e["cat"]), *e["args"].items())) for e in own
    ]
