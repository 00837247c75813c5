"""Runs the levels on a platform, and counts."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import polyax
from polyax.backend import UsageError
from polyax_conformance.card import LEVELS, Card, Score
from polyax_conformance.gaps import Gap, unmet
from polyax_conformance.names import name_of
from polyax_conformance.pytest_plugin import GAPS

FOLDER = Path(__file__).with_name("levels")

Watch = Callable[[str, int, int], None]
"""``watch(level, done, total)``, called after each test."""


class Suite:
    """A run of the suite; as a plugin of pytest it says which gaps there are, and counts results."""

    def __init__(self, card: Card, gaps: Sequence[Gap], watch: Watch | None = None) -> None:
        self.card = card
        self.gaps = gaps
        self._watch = watch
        self._seen: set[str] = set()
        self._total = 0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._total = len(session.items)

    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[GAPS] = {self.card.platform: self.gaps}

    def pytest_runtest_logreport(self, report: Any) -> None:
        name = name_of(report.nodeid)
        if name in self._seen or not (report.when == "call" or report.outcome != "passed"):
            return
        self._seen.add(name)
        if self._watch is not None:
            self._watch(name.split("::")[0], len(self._seen), self._total)
        self.card.speed.update(report.user_properties)
        score = self.card.levels.setdefault(name.split("::")[0], Score())
        if report.outcome == "passed":
            score.passed += 1
        elif report.outcome == "failed":
            score.failed += 1
            self.card.failures.append(f"{name}: {reason_of(report)}")
        elif hasattr(report, "wasxfail"):
            score.gaps += 1
        else:
            score.skipped += 1


def reason_of(report: Any) -> str:
    text = str(getattr(getattr(report.longrepr, "reprcrash", None), "message", report.longrepr))
    return (text.splitlines() or [""])[0]


def folders_of(levels: Sequence[int]) -> list[Path]:
    """The folders of some levels; of all, if none is named.

    Raises:
      UsageError: there is no such level.
    """
    if unknown := [n for n in levels if not 0 <= n < len(LEVELS)]:
        raise UsageError(f"there is no level {unknown[0]}; levels are 0 ({LEVELS[0]}) to {len(LEVELS) - 1}")
    return [FOLDER / LEVELS[n] for n in levels or range(len(LEVELS))]


def grade(
    platform: str,
    levels: Sequence[int] = (),
    gaps: Sequence[Gap] = (),
    chosen: str = "",
    watch: Watch | None = None,
) -> Card:
    """The score card of a platform.

    Args:
      levels: the numbers of those to run; all, if there are none.
      gaps: what is expected to fail.
      chosen: words that choose among tests, as ``pytest -k`` takes them.
      watch: is told how far it is.

    Raises:
      UsageError: the platform can't be used, or a gap names no test.
    """
    card = Card(platform, owner_of(platform), version("polyax"))
    _run_pytest(Suite(card, gaps, watch), folders_of(levels), ["-k", chosen] if chosen else [])
    if not levels and not chosen:
        _refuse_lost(gaps)
    return card


def refuse_unmet(platform: str, gaps: Sequence[Gap]) -> None:
    """Looks through all tests without running them.

    Raises:
      UsageError: a gap names none of them.
    """
    if gaps:
        _run_pytest(Suite(Card(platform, "", ""), gaps), folders_of(()), ["--collect-only"])
        _refuse_lost(gaps)


def _refuse_lost(gaps: Sequence[Gap]) -> None:
    if lost := unmet(gaps):
        raise UsageError(f"gaps that name no test: {', '.join(lost)}. Correct the names, or remove what is closed")


def _run_pytest(suite: Suite, folders: Sequence[Path], more: Sequence[str]) -> None:
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "polyax_conformance.pytest_plugin"]
    arguments += ["-c", str(FOLDER / "suite.ini"), f"--platforms={suite.card.platform}", *more]
    told = io.StringIO()
    with redirect_stdout(told), redirect_stderr(told):
        status = pytest.main([*arguments, *map(str, folders)], plugins=[suite])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise UsageError(f"the suite couldn't run ({status!r}):\n{told.getvalue()}")


def owner_of(platform: str) -> str:
    """Who brings a platform.

    Raises:
      UsageError: it can't be used; the text says why.
    """
    try:
        backend = polyax.devices(platform)[0].client
    except RuntimeError as e:
        raise UsageError(str(e)) from None
    return backend.owner.title if backend.owner is not None else backend.name
