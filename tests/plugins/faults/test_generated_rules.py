"""A thousand wrong lowerings: each is named with place and remedy, or does no harm; nobody else is blamed,
and no number is wrong in silence.

What only a comparison can tell is found by ``POLYAX_DEBUG_BACKEND``, which names the lowering.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("polyax_fusion")

from plugins.faults.broken import backend, lowering
from plugins.faults.interpreted import Interpreted
from plugins.faults.mutants import blamed, told
from plugins.faults.rule_mutants import PROGRAMS, RuleMutant, rule_mutants

import polyax
from polyax.ir.errors import Disagreement, PluginError

PLATFORM, ENTRY = "numpy_kernels", "numpy_kernels.broken"
WHOSE = f"plugin '{ENTRY}' of polyax-broken 1.2.3"
RULES = list(rule_mutants())


@pytest.fixture(autouse=True, scope="module")
def interpreted() -> Iterator[None]:
    with backend(Interpreted, PLATFORM):
        yield


def computed(case: str) -> list[np.ndarray]:
    """The results of a program, and its inputs afterwards."""
    program, args = PROGRAMS[case]
    inputs = [polyax.numpy.array(x) for x in args]
    results = polyax.tree_util.tree_leaves(polyax.jit(program)(*inputs))
    return [np.asarray(x) for x in (*results, *inputs)]


@functools.cache
def on_reference(case: str) -> list[np.ndarray]:
    with polyax.default_device("reference"):
        return computed(case)


def same(got: list[np.ndarray], want: list[np.ndarray]) -> bool:
    return all(np.allclose(g, w, rtol=1e-4, atol=1e-5, equal_nan=True) for g, w in zip(got, want, strict=True))


def outcome(case: str) -> str:
    """What a user is told; "" if the results are right."""
    want = on_reference(case)
    try:
        with polyax.config.override(checks=True):
            got = computed(case)
    except Exception as e:
        return told(e)
    if same(got, want):
        return ""
    polyax.clear_caches()
    try:
        with polyax.config.override(debug_backend=PLATFORM):
            computed(case)
    except (Disagreement, PluginError) as e:
        return told(e)
    return "wrong numbers in silence"


@pytest.mark.parametrize("mutant", RULES, ids=lambda m: m.name)
def test_no_lowering_is_wrong_in_silence(mutant: RuleMutant) -> None:
    with lowering({mutant.primitive: mutant.rule}, ENTRY):
        text = outcome(mutant.case)
    assert not text or (WHOSE in text and blamed(text) == {ENTRY}), text
    assert not text or "POLYAX_" in text, text


def test_there_are_many_of_each_kind() -> None:
    kinds = {m.name.partition(": ")[2].partition(",")[0] for m in RULES}
    assert len(RULES) > 900 and len(kinds) > 50
    assert {"operands swapped", "an operand dropped", "a constant one more", "another axis", "no cast"} <= kinds
