"""At which place of the grid a kernel runs."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class GridPlace:
    """Where in a grid of which sizes."""

    indices: tuple[Any, ...]
    sizes: tuple[Any, ...]


@dataclass
class _Running(threading.local):
    places: list[GridPlace] = field(default_factory=list)


_running = _Running()


@contextmanager
def at(place: GridPlace) -> Generator[None]:
    """Kernels run there meanwhile."""
    _running.places.append(place)
    try:
        yield
    finally:
        _running.places.pop()


def _asked(what: str, axis: int) -> GridPlace:
    if not _running.places:
        raise ValueError(f"{what}({axis}) is asked for outside of a kernel: only `pallas_call` runs on a grid")
    place = _running.places[-1]
    if not -len(place.sizes) <= axis < len(place.sizes):
        raise ValueError(f"Axis {axis} is out of bounds for grid {place.sizes}")
    return place


def program_id(axis: int) -> Any:
    """The place along an axis of the grid at which the kernel runs: an int32 scalar.

    Raises:
      ValueError: no kernel runs, or its grid has no such axis.
    """
    return _asked("program_id", axis).indices[axis]


def num_programs(axis: int) -> Any:
    """The size of the grid along an axis: an integer, or an int32 scalar if it is computed.

    Raises:
      ValueError: no kernel runs, or its grid has no such axis.
    """
    return _asked("num_programs", axis).sizes[axis]
