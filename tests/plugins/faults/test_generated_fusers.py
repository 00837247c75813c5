"""Hundreds of wrong fusers: each is named, with the remedy, or does no harm; nobody else is blamed, and no number is
wrong in silence."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("polyax_fusion")

from plugins.faults.broken import backend, fuser
from plugins.faults.fuser_mutants import PROGRAMS, FuserMutant, fuser_mutants
from plugins.faults.interpreted import Interpreted
from plugins.faults.mutants import blamed, told

import polyax
from polyax.ir.errors import Disagreement

PLATFORM, ENTRY = "numpy_kernels", "numpy_kernels.broken"
WHOSE = f"plugin '{ENTRY}' of polyax-broken 1.2.3"
FUSERS = fuser_mutants()


@pytest.fixture(autouse=True, scope="module")
def interpreted() -> Iterator[None]:
    with backend(Interpreted, PLATFORM):
        yield


def computed(case: str) -> list[np.ndarray]:
    """The results of a program, and its inputs afterwards."""
    program, args = PROGRAMS[case]
    inputs = [polyax.numpy.array(x) for x in args]
    results = polyax.tree_util.tree_leaves(polyax.jit(program)(*inputs))
    polyax.effects_barrier()
    return [np.asarray(x) for x in (*results, *inputs)]


@functools.cache
def on_reference(case: str) -> list[np.ndarray]:
    with polyax.default_device("reference"):
        return computed(case)


def outcome(case: str) -> str:
    """What a user is told; "" if the results are right."""
    want = on_reference(case)
    try:
        with polyax.config.override(checks=True):
            got = computed(case)
    except Exception as e:
        return told(e)
    if all(np.allclose(g, w, rtol=1e-4, atol=1e-5) for g, w in zip(got, want, strict=True)):
        return ""
    polyax.clear_caches()
    try:
        with polyax.config.override(debug_backend=PLATFORM):
            computed(case)
    except Disagreement as e:
        return told(e)
    return "wrong numbers in silence"


@pytest.mark.parametrize("mutant", FUSERS, ids=lambda m: m.name)
def test_no_fuser_is_wrong_in_silence(mutant: FuserMutant) -> None:
    with fuser(lambda graph, limits: mutant.change(graph), ENTRY):
        text = outcome(mutant.case)
    assert not text or (WHOSE in text and blamed(text) == {ENTRY}), text
    assert not text or "POLYAX_FUSERS" in text, text


def test_there_are_many_of_each_kind() -> None:
    assert len(FUSERS) > 500
