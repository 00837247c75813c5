"""Python functions whose ranges the threads of the native runtime share."""

from __future__ import annotations

import threading

import pytest

from polyax.ir.config import config
from polyax_cpu.libraries.sharing import share


@pytest.fixture(autouse=True, params=[1, 2, 3])
def threads(request: pytest.FixtureRequest):
    with config.override(num_threads=request.param):
        yield request.param


@pytest.mark.parametrize("grain", [1, 16])
@pytest.mark.parametrize("extent", [0, 1, 16, 50, 316])
def test_each_number_is_met_once(extent: int, grain: int, threads: int) -> None:
    seen: list[tuple[int, int]] = []
    share(extent, lambda begin, end: seen.append((begin, end)), grain)
    assert sorted(n for begin, end in seen for n in range(begin, end)) == list(range(extent))
    assert len(seen) <= threads and all(begin % grain == 0 for begin, _ in seen)


def test_an_error_is_raised_when_all_have_ended(threads: int) -> None:
    done: list[int] = []

    def run(begin: int, end: int) -> None:
        if begin == 0:
            raise ValueError("no")
        done.append(end - begin)

    with pytest.raises(ValueError, match="no"):
        share(60, run)
    assert sum(done) == (0 if threads == 1 else 60 - 60 // threads)


def test_shares_may_be_shared_and_callers_are_several() -> None:
    counts: list[int] = []

    def outer(begin: int, end: int) -> None:
        share(end - begin, lambda b, e: counts.append(e - b))

    callers = [threading.Thread(target=lambda: share(40, outer)) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert sum(counts) == 120
