"""The page of score cards says what the cards say, for every platform that can be graded without hardware."""

from __future__ import annotations

import re

import cards

from links import ROOT
from polyax_conformance.card import Card, Score
from polyax_conformance.names import LEVELS


def test_page_and_badges_are_those_of_the_cards() -> None:
    kept = cards.kept()
    assert cards.PAGE.read_text() == cards.page(kept)
    for card in kept:
        assert (cards.FOLDER / f"{card.platform}.svg").read_text() == card.svg()
        assert not card.failures and card.level == len(LEVELS) - 1, card.text()


def test_every_platform_of_the_readme_has_a_card() -> None:
    (table,) = re.findall(r"^\| platform \| distribution .*?\n\n", (ROOT / "README.md").read_text(), re.M | re.S)
    named = set(re.findall(r"^\| `(\w+)` \|", table, re.M))
    assert named - {"cuda"} == {card.platform for card in cards.kept()} == set(cards.PLATFORMS)


def test_what_fails_and_what_is_a_gap_is_told() -> None:
    card = Card("mine", "polyax-mine 1.0", "0.1.0", {"contract": Score(3, 0, 2), "scalars": Score(1, 4)}, ["x: y"])
    row = cards.page([card]).splitlines()[-1]
    assert row.startswith("| ![mine](cards/mine.svg) | polyax-mine 1.0 | 3 (2) | 1, **4 fail** | – |")
    assert row.endswith("| 0 | 40.0% |")
