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
COMPARED = {
    "zeros", "one more", "an operand dropped", "another operation", "the first operand for all",
    "operands in the other order", "operands swapped", "a constant one more", "a constant of the other sign",
    "a fold too short", "a fold that starts elsewhere", "another fold", "another axis", "stored as zeros",
    "an operand less", "an operand more", "one row on", "one column on", "a grid too short", "bits instead of values",
    "stored", "added", "in any order", "a call that does nothing", "a call that rolls its result",
    "a call that adds one", "a program of the other order", "a program without an operand", "a program with a constant",
}  # fmt: skip
"""What gives kernels that are as good as any: who compares numbers finds it, and nobody else can."""


def what(mutant: RuleMutant) -> str:
    """What is wrong, in whichever rule."""
    return mutant.name.partition(": ")[2].partition(",")[0]


@pytest.fixture(autouse=True, scope="module")
def interpreted() -> Iterator[None]:
    with backend(Interpreted, PLATFORM):
        yield


@pytest.mark.parametrize("mutant", RULES, ids=lambda m: m.name)
def test_no_lowering_is_wrong_in_silence(mutant: RuleMutant) -> None:
    with lowering({mutant.primitive: mutant.rule}, ENTRY):
        text, compared = CASES.outcome(mutant.case)
    assert not text or (WHOSE in text and blamed(text) == {ENTRY}), text
    assert not text or "POLYAX_" in text, text
    assert not compared or what(mutant) in COMPARED, f"only a comparison finds it: {text}"


def test_there_are_many_of_each_kind() -> None:
    kinds = {what(m) for m in RULES}
    assert len(RULES) > 900 and len(kinds) > 50 and kinds > COMPARED
    assert {"operands swapped", "an operand dropped", "a constant one more", "another axis", "no cast"} <= kinds
