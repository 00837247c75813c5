"""Traces that were written, read again: planes of lines of events."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


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
    """What one process did."""

    name: str
    lines: Sequence[ProfileLine]
    stats: Sequence[tuple[str, Any]] = ()


class ProfileData:
    """A trace. ``planes`` are its processes, of which there is one."""

    def __init__(self, text: dict[str, Any]) -> None:
        told = [e for e in text["traceEvents"] if e["ph"] == "M"]
        threads = {e["tid"]: e["args"]["name"] for e in told if e["name"] == "thread_name"}
        lines = [ProfileLine(name, _events(text["traceEvents"], tid)) for tid, name in threads.items()]
        processes = [e["args"]["name"] for e in told if e["name"] == "process_name"]
        self._planes = [ProfilePlane(name, lines) for name in processes]

    @staticmethod
    def from_file(path: str) -> ProfileData:
        """The trace in a file that ``stop_trace`` wrote.

        Raises:
          ValueError: it is no such file.
        """
        with open(path, "rb") as f:
            return ProfileData.from_serialized(f.read())

    @staticmethod
    def from_serialized(data: bytes) -> ProfileData:
        """The trace in the bytes of such a file."""
        try:
            return ProfileData(json.loads(gzip.decompress(data)))
        except (OSError, KeyError, TypeError, ValueError) as e:
            raise ValueError(f"these bytes are no trace of polyax, gzipped JSON in Chrome's format: {e}") from e

    @property
    def planes(self) -> Iterator[ProfilePlane]:
        return iter(self._planes)

    def find_plane_with_name(self, name: str) -> ProfilePlane | None:
        return next((p for p in self._planes if p.name == name), None)


def _events(events: Sequence[dict[str, Any]], thread: int) -> list[ProfileEvent]:
    own = [e for e in events if e["ph"] == "X" and e["tid"] == thread]
    return [
        ProfileEvent(e["name"], e["ts"] * 1e3, e["dur"] * 1e3, (("kind", e["cat"]), *e["args"].items())) for e in own
    ]
