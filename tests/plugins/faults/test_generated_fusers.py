"""Hundreds of wrong fusers: each is named, with the remedy, or does no harm; nobody else is blamed, and no number is
wrong in silence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("polyax_fusion")

from plugins.faults.broken import backend, fuser
from plugins.faults.fuser_mutants import PROGRAMS, FuserMutant, fuser_mutants
from plugins.faults.interpreted import Interpreted
from plugins.faults.mutants import blamed
from plugins.faults.outcomes import ENTRY, PLATFORM, WHOSE, Cases

FUSERS, CASES = fuser_mutants(), Cases(PROGRAMS)


@pytest.fixture(autouse=True, scope="module")
def interpreted() -> Iterator[None]:
    with backend(Interpreted, PLATFORM):
        yield


@pytest.mark.parametrize("mutant", FUSERS, ids=lambda m: m.name)
def test_no_fuser_is_wrong_in_silence(mutant: FuserMutant) -> None:
    with fuser(lambda graph, limits: mutant.change(graph), ENTRY):
        text = CASES.outcome(mutant.case)
    assert not text or (WHOSE in text and blamed(text) == {ENTRY}), text
    assert not text or "POLYAX_FUSERS" in text, text


def test_there_are_many_of_each_kind() -> None:
    assert len(FUSERS) > 500
