"""Hundreds of broken backends: each is named with place and remedy, or does no harm; no number is wrong in silence.

What only a comparison can tell (a device that computes something else) is caught by ``POLYAX_DEBUG_BACKEND`` or by the
first level of the conformance suite.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("polyax_conformance")

from plugins.faults.broken import OWNER, Working, backend
from plugins.faults.mutants import VALUES, Mutant, answers, blamed, launches, memory, natives, told, use

import polyax
from polyax.ir.errors import Disagreement, PluginError
from polyax_conformance.levels.contract import test_contract as contract
from polyax_conformance.levels.control_flow import test_callbacks as callbacks

ALL = [*answers(), *natives(), *launches(), *memory()]
PLACES = ("result 0", "result 1", "to_host", "to_device", "copy")
COMPARED = {f"{place} of {how}" for place in PLACES for how in VALUES} | {
    "results of the launch before", "one buffer for all launches", "inputs are written to", "nothing is run",
    "to_device keeps the host's memory",
}  # fmt: skip
"""What gives other numbers in arrays that are as they should be: who compares them finds it, and nobody else can."""


@pytest.fixture(autouse=True)
def checked() -> Iterator[None]:
    """On two devices, with all checks."""
    with polyax.config.override(num_cpu_devices=2, checks=True):
        yield


@functools.cache
def right() -> list[np.ndarray]:
    with backend(Working) as device:
        return use(device)


def same(got: list[np.ndarray], want: list[np.ndarray]) -> bool:
    return len(got) == len(want) and all(
        g.shape == w.shape and g.dtype == w.dtype and np.allclose(g, w) for g, w in zip(got, want)
    )


def caught(kind: type[Any]) -> str:
    """What a user is told of a backend that gave a wrong number, by one who looks for that."""
    try:
        with backend(kind) as device, polyax.config.override(debug_backend="broken"):
            use(device)
    except (Disagreement, PluginError) as e:
        return told(e)
    with backend(kind):
        return next(failures("broken"), "")


def failures(platform: str) -> Iterator[str]:
    """The conformance suite's tests that fail, of those that are quick."""
    for module in (contract, callbacks):
        for name, test in vars(module).items():
            for case in cases(test) if name.startswith("test_") else ():
                try:
                    test(**case, platform=platform)
                except pytest.skip.Exception:
                    continue
                except Exception:
                    yield f"{OWNER} fails {name}"


def cases(test: Any) -> list[dict[str, Any]]:
    """The arguments of a test, from its mark."""
    marks = [m for m in getattr(test, "pytestmark", ()) if m.name == "parametrize"]
    return [{m.args[0]: value} for m in marks for value in m.args[1]] or [{}]


@pytest.mark.filterwarnings("ignore:polyax. plugin 'broken'")  # which can't be opened, say
@pytest.mark.parametrize("mutant", ALL, ids=lambda m: m.name)
def test_no_fault_is_silent_and_nobody_else_is_blamed(mutant: Mutant) -> None:
    kind, want = mutant.make(), right()
    try:
        with backend(kind) as device:
            got = use(device)
    except Exception as e:
        text = told(e)
    else:
        assert same(got, want) or mutant.name in COMPARED, f"only a comparison finds {mutant.name}"
        text = "" if same(got, want) else caught(kind)
        assert text or same(got, want), f"{mutant.name} gives wrong numbers in silence"
    assert not text or OWNER in text, f"{mutant.name} is told as: {text}"
    assert blamed(text) <= {"broken"}, text


def test_few_of_many_can_be_told_by_numbers_alone() -> None:
    names = [m.name for m in ALL]
    assert set(names) >= COMPARED and len(COMPARED) == 30 and len(names) > 400
