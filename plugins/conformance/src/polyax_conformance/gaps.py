"""Gaps: what a backend doesn't do, declared by its author; strict, so that none outlives its reason."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyax.backend import PRIMITIVES, UsageError
from polyax_conformance.names import LEVELS

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
        found = tomllib.loads(path.read_text("utf-8-sig"))  # as TOML is everywhere, and as some editors write it
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise UsageError(f"{path} can't be read as gaps: {e}") from None
    if unknown := found.keys() - {"gap"}:
        raise UsageError(f"{path} has {', '.join(sorted(unknown))}; gaps are written as [[gap]]")
    entries = found.get("gap", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UsageError(f"{path} has gap = {entries!r}; gaps are written as [[gap]]")
    return [_gap(path, n, entry) for n, entry in enumerate(entries)]


def _gap(path: Path, number: int, entry: Any) -> Gap:
    where = f"{path}, gap {number} ({entry.get('what', 'without what')})"
    if unknown := entry.keys() - _KEYS:
        raise UsageError(f"{where} has {', '.join(sorted(unknown))}; a gap has what, kind, reason, tests, primitives")
    if lacking := [key for key in ("what", "kind", "reason") if not _is_told(entry.get(key))]:
        raise UsageError(f"{where} has no {' and no '.join(lacking)}: give a text")
    if entry["kind"] not in KINDS:
        raise UsageError(f"{where} is of kind {entry['kind']!r}; kinds are {', '.join(KINDS)}")
    tests, primitives = (_texts(where, entry, key) for key in ("tests", "primitives"))
    if wrong := [pattern for pattern in tests if not _may_name_a_test(pattern)]:
        raise UsageError(f"{where} names {wrong[0]!r}; tests are level::name, and levels are {', '.join(LEVELS)}")
    if unknown := set(primitives) - {p.name for p in PRIMITIVES}:
        told = ", ".join(sorted(unknown))
        raise UsageError(f"{where} names primitives that aren't: {told}; polyax.backend.PRIMITIVES has all")
    return Gap(entry["what"], entry["kind"], entry["reason"], tests)


def _is_told(text: Any) -> bool:
    return isinstance(text, str) and bool(text.strip())


def _texts(where: str, entry: Any, key: str) -> tuple[str, ...]:
    """A text alone is refused: its letters would be taken for patterns, and its * would name every test."""
    found = entry.get(key, [])
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise UsageError(f"{where} has {key} = {found!r}, not a list of texts")
    return tuple(found)


def _may_name_a_test(pattern: str) -> bool:
    """Tests of the author's own have the names of their files, as pytest knows them."""
    level, separator, _ = pattern.partition("::")
    return bool(separator) and ("test" in level or any(fnmatch.fnmatchcase(name, level) for name in LEVELS))


def unmet(gaps: Iterable[Gap]) -> list[str]:
    """Patterns that name no test: what was closed, or misspelt."""
    return [f"{pattern!r} of {gap.what!r}" for gap in gaps for pattern in gap.tests if pattern not in gap.met]
