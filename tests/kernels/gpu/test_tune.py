"""The search for tiles: what it picks, and what it remembers in memory and on disk."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from polyax.ir.config import config
from polyax_kernels.gpu.products import tune


@dataclass(frozen=True)
class Choice:
    n: int


CHOICES = [Choice(n) for n in range(4)]


@pytest.fixture(autouse=True)
def searching(tmp_path, monkeypatch) -> Iterator[None]:
    """Tuning is on, nothing is known, and the disk is empty."""
    monkeypatch.setattr(tune, "_known", {})
    with config.override(tune=True, cache_dir=str(tmp_path)):
        yield


class Clock:
    """Gives a candidate's seconds, and counts the questions."""

    def __init__(self, *seconds: float) -> None:
        self.seconds = seconds
        self.asked: list[Choice] = []

    def __call__(self, choice: Choice) -> float:
        self.asked.append(choice)
        return self.seconds[choice.n]


def forget(monkeypatch) -> None:
    """As a new process."""
    monkeypatch.setattr(tune, "_known", {})


def test_the_fastest_is_chosen_once() -> None:
    clock = Clock(0.004, 0.002, 0.001, 0.003)
    assert tune.fastest("a", CHOICES, clock) == Choice(2)
    count = len(clock.asked)
    assert tune.fastest("a", CHOICES, clock) == Choice(2) and len(clock.asked) == count


def test_another_kind_of_work_is_searched_for_anew() -> None:
    assert tune.fastest("a", CHOICES, Clock(1e-3, 2e-3, 3e-3, 4e-3)) == Choice(0)
    assert tune.fastest("b", CHOICES, Clock(4e-3, 3e-3, 2e-3, 1e-3)) == Choice(3)


def test_the_choice_is_remembered_on_disk(monkeypatch) -> None:
    tune.fastest("a", CHOICES, Clock(4e-3, 1e-3, 2e-3, 3e-3))
    forget(monkeypatch)
    clock = Clock(1e-3, 4e-3, 2e-3, 3e-3)
    assert tune.fastest("a", CHOICES, clock) == Choice(1) and not clock.asked


@pytest.mark.parametrize("data", [b"not json", b'{"kind": "Choice", "n": 77}', b"[]"])
def test_damaged_and_outdated_entries_are_searched_for_anew(monkeypatch, data: bytes) -> None:
    tune._cache.put("a", data)
    assert tune.fastest("a", CHOICES, Clock(4e-3, 1e-3, 2e-3, 3e-3)) == Choice(1)
    forget(monkeypatch)
    clock = Clock(1e-3, 4e-3, 2e-3, 3e-3)
    assert tune.fastest("a", CHOICES, clock) == Choice(1) and not clock.asked


def test_a_damaged_file_is_searched_for_anew(monkeypatch, tmp_path) -> None:
    tune.fastest("a", CHOICES, Clock(4e-3, 1e-3, 2e-3, 3e-3))
    for entry in (tmp_path / "tuning").iterdir():
        entry.write_bytes(entry.read_bytes()[:-3])
    forget(monkeypatch)
    assert tune.fastest("a", CHOICES, Clock(1e-3, 4e-3, 2e-3, 3e-3)) == Choice(0)


def test_what_the_device_refuses_is_not_chosen() -> None:
    assert tune.fastest("a", CHOICES, Clock(math.inf, 3e-3, math.inf, 2e-3)) == Choice(3)


def test_the_search_ends_when_its_time_is_spent() -> None:
    clock = Clock(tune.BUDGET, 1e-3, 1e-3, 1e-3)
    assert tune.fastest("a", CHOICES, clock) == Choice(0)
    assert set(clock.asked) == {Choice(0)}


def test_off_takes_the_first() -> None:
    clock = Clock(4e-3, 1e-3, 2e-3, 3e-3)
    with config.override(tune=False):
        assert tune.fastest("a", CHOICES, clock) == Choice(0)
    assert not clock.asked
