"""Levels side by side: each in a process of its own, whose cards are put together."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from polyax.backend import UsageError
from polyax_conformance.card import LEVELS, Card

ALONE = LEVELS.index("speed")
"""What takes times has the machine for itself."""


def grade_side_by_side(
    platform: str, levels: Sequence[int], jobs: int, rest: Sequence[str], watch: Callable[[str, int, int], None] | None
) -> Card:
    """The score card of a platform, whose ``levels`` run in up to ``jobs`` processes at once.

    ``rest``: arguments of the command that all of them get.

    Raises:
      UsageError: one of them couldn't run; the text is its own.
    """
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        ended: list[Card] = []

        def run(level: int) -> Card:
            card = card_of(platform, level, rest, Path(folder, f"{level}.json"))
            ended.append(card)
            if watch is not None:
                watch(f"levels, the last one {LEVELS[level]}", len(ended), len(levels))
            return card

        cards = list(pool.map(run, [n for n in levels if n != ALONE]))
        cards += [run(n) for n in levels if n == ALONE]
    return together(cards)


def card_of(platform: str, level: int, rest: Sequence[str], file: Path) -> Card:
    """What a process of its own finds at one level."""
    command = [sys.executable, "-m", "polyax", "check", platform, "--level", str(level), "--json", str(file), *rest]
    done = subprocess.run(command, capture_output=True, text=True)
    if not file.exists():
        told = done.stderr.strip().removeprefix("polyax check: ")
        raise UsageError(told or f"level {level} ended with status {done.returncode} and said nothing")
    return Card.from_json(file.read_text())


def together(cards: Sequence[Card]) -> Card:
    """One card with the levels of all, in their order."""
    levels = {name: score for card in cards for name, score in card.levels.items()}
    return replace(
        cards[0],
        levels={name: levels[name] for name in LEVELS if name in levels},
        failures=[failure for card in cards for failure in card.failures],
        speed={what: times for card in cards for what, times in card.speed.items()},
    )
