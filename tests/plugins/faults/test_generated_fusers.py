"""Hundreds of wrong fusers: each is named, with the remedy, or does no harm; nobody else is blamed, and no number is
wrong in silence."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

pytest.importorskip("polyax_fusion")

from plugins.faults.broken import backend, fuser
from plugins.faults.fuser_mutants import PROGRAMS, FuserMutant, fuser_mutants
from plugins.faults.interpreted import Interpreted
from plugins.faults.mutants import blamed
from plugins.faults.outcomes import ENTRY, PLATFORM, WHOSE, Cases

FUSERS, CASES = fuser_mutants(), Cases(PROGRAMS)
COMPARED = {
    "stored as zeros", "stored across", "added, not stored", "reading another value", "as an alias",
    "in place of the first input", "with its results in the other order", "with its branches swapped",
    "with one branch for all", "another axis", "another operation", "an operand dropped", "operands swapped",
    "a constant one more", "a constant of the other sign", "another fold", "a fold that starts elsewhere",
    "a fold too short", "one row on", "one row back",
}  # fmt: skip
"""What gives another graph that is as good as any: who compares numbers finds it, and nobody else can."""


def what(mutant: FuserMutant) -> str:
    """What is wrong, wherever it is."""
    return re.split(r"\) |\): ", mutant.name)[-1]


@pytest.fixture(autouse=True, scope="module")
def interpreted() -> Iterator[None]:
    with backend(Interpreted, PLATFORM):
        yield


@pytest.mark.parametrize("mutant", FUSERS, ids=lambda m: m.name)
def test_no_fuser_is_wrong_in_silence(mutant: FuserMutant) -> None:
    with fuser(lambda graph, limits: mutant.change(graph), ENTRY):
        text, compared = CASES.outcome(mutant.case)
    assert not text or (WHOSE in text and blamed(text) == {ENTRY}), text
    assert not text or "POLYAX_FUSERS" in text, text
    assert not compared or what(mutant) in COMPARED, f"only a comparison finds it: {text}"


def test_there_are_many_of_each_kind() -> None:
    silent = [m for m in FUSERS if what(m) in COMPARED]
    assert len(FUSERS) > 1500 and len(silent) < len(FUSERS) / 3
    assert {what(m) for m in silent} == COMPARED
