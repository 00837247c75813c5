"""The page of score cards says what the cards say, for every platform that can be graded without hardware."""

from __future__ import annotations

import re
import sys
from collections import Counter

import cards

from links import ROOT
from polyax_conformance.card import Card, Score
from polyax_conformance.names import LEVELS, name_of
from polyax_conformance.suite import FOLDER
from support.process import finished


def test_page_and_badges_are_those_of_the_cards() -> None:
    kept = cards.kept()
    assert cards.PAGE.read_text() == cards.page(kept)
    for card in kept:
        assert (cards.FOLDER / f"{card.platform}.svg").read_text() == card.svg()
        assert not card.failures, card.text()
        assert card.level == len(LEVELS) - 1 or card.platform in cards.WITH_HARDWARE, card.text()


def test_cards_are_those_of_this_suite() -> None:
    """Who adds a test to a level grades the platforms again; ``make cards-check`` looks at results as well."""
    words = ["-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-c", f"{FOLDER}/suite.ini"]
    done = finished([sys.executable, *words, "--platforms=reference", *(f"{FOLDER}/{name}" for name in LEVELS)], 120)
    found = Counter(name_of(line).split("::")[0] for line in done.stdout.splitlines() if "::" in line)
    for card in cards.kept():
        if card.platform in cards.WITH_HARDWARE:
            continue  # it says when it was made
        assert {n: s.passed + s.failed + s.gaps + s.skipped for n, s in card.levels.items()} == found, card.platform


def test_a_card_that_tells_something_else_is_old() -> None:
    old = Card("mine", "mine", "0.1.0", {"contract": Score(3, 0, 2, 1), "scalars": Score(1)})
    assert not cards.differences(old, Card("mine", "mine", "0.1.0", {"contract": Score(4, 0, 2), "scalars": Score(1)}))
    new = Card("mine", "mine", "0.1.0", {"contract": Score(4, 1, 1), "scalars": Score(1)}, ["x: y"])
    (level, failure) = cards.differences(old, new)
    assert level.startswith("level contract: ") and failure == "x: y"


def test_every_platform_of_the_readme_has_a_card() -> None:
    (table,) = re.findall(r"^\| platform \| distribution .*?\n\n", (ROOT / "README.md").read_text(), re.M | re.S)
    named = set(re.findall(r"^\| `(\w+)` \|", table, re.M))
    assert named == {card.platform for card in cards.kept()} == {*cards.PLATFORMS, *cards.WITH_HARDWARE}


def test_what_fails_and_what_is_a_gap_is_told() -> None:
    card = Card("mine", "polyax-mine 1.0", "0.1.0", {"contract": Score(3, 0, 2), "scalars": Score(1, 4)}, ["x: y"])
    row = cards.page([card]).splitlines()[-1]
    assert row.startswith("| ![mine](cards/mine.svg) | polyax-mine 1.0 | 3 (2) | 1, **4 fail** | – |")
    assert row.endswith("| 0 | 40.0% |")
