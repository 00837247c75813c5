"""A thousand wrong lowerings: each is named with place and remedy, or does no harm; nobody else is blamed,
and no number is wrong in silence.

What only a comparison can tell is found by ``POLYAX_DEBUG_BACKEND``, which names the lowering.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("polyax_fusion")

from plugins.faults.broken import backend, lowering
from plugins.faults.interpreted import Interpreted
from plugins.faults.mutants import blamed
from plugins.faults.outcomes import ENTRY, PLATFORM, WHOSE, Cases
from plugins.faults.rule_mutants import PROGRAMS, RuleMutant, rule_mutants

RULES, CASES = list(rule_mutants()), Cases(PROGRAMS)


@pytest.fixture(autouse=True, scope="module")
def interpreted() -> Iterator[None]:
    with backend(Interpreted, PLATFORM):
        yield


@pytest.mark.parametrize("mutant", RULES, ids=lambda m: m.name)
def test_no_lowering_is_wrong_in_silence(mutant: RuleMutant) -> None:
    with lowering({mutant.primitive: mutant.rule}, ENTRY):
        text = CASES.outcome(mutant.case)
    assert not text or (WHOSE in text and blamed(text) == {ENTRY}), text
    assert not text or "POLYAX_" in text, text


def test_there_are_many_of_each_kind() -> None:
    kinds = {m.name.partition(": ")[2].partition(",")[0] for m in RULES}
    assert len(RULES) > 900 and len(kinds) > 50
    assert {"operands swapped", "an operand dropped", "a constant one more", "another axis", "no cast"} <= kinds
