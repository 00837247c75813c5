"""Gaps: what a backend doesn't do, declared by its author; strict, so that none outlives its reason."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyax.backend import UsageError

KINDS = ("notimpl", "notyet", "never")
"""Could be done, waits for something else, can't be done by the nature of the device."""
_KEYS = {"what", "kind", "reason", "tests", "primitives"}


@dataclass
class Gap:
    """``tests``: patterns of the tests that fail for it, ``level::name``."""

    what: str
    kind: str
    reason: str
    tests: Sequence[str] = ()
    met: set[str] = field(default_factory=set)
    """The patterns that named a test."""

    def covers(self, test: str) -> bool:
        """Whether a test, ``level::name``, is expected to fail."""
        found = [pattern for pattern in self.tests if fnmatch.fnmatchcase(test, pattern)]
        self.met.update(found)
        return bool(found)


def read_gaps(path: Path) -> list[Gap]:
    """The gaps of a file.

    Raises:
      UsageError: there is no such file, or something in it isn't a gap; the text says what.
    """
    try:
        found = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as e:
        raise UsageError(f"{path} can't be read as gaps: {e}") from None
    if unknown := found.keys() - {"gap"}:
        raise UsageError(f"{path} has {', '.join(sorted(unknown))}; gaps are written as [[gap]]")
    return [_gap(path, n, entry) for n, entry in enumerate(found.get("gap", []))]


def _gap(path: Path, number: int, entry: Any) -> Gap:
    where = f"{path}, gap {number} ({entry.get('what', 'without what')})"
    if unknown := entry.keys() - _KEYS:
        raise UsageError(f"{where} has {', '.join(sorted(unknown))}; a gap has what, kind, reason, tests, primitives")
    if lacking := [key for key in ("what", "kind", "reason") if not entry.get(key)]:
        raise UsageError(f"{where} has no {' and no '.join(lacking)}")
    if entry["kind"] not in KINDS:
        raise UsageError(f"{where} is of kind {entry['kind']!r}; kinds are {', '.join(KINDS)}")
    return Gap(entry["what"], entry["kind"], entry["reason"], tuple(entry.get("tests", ())))


def unmet(gaps: Iterable[Gap]) -> list[str]:
    """Patterns that name no test: what was closed, or misspelt."""
    return [f"{pattern!r} of {gap.what!r}" for gap in gaps for pattern in gap.tests if pattern not in gap.met]
