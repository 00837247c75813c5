"""What of the suite needs a process of its own. All else are tests of this repository as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("polyax_conformance")

from polyax_conformance.card import LEVELS, Card
from polyax_conformance.suite import FOLDER
from support.process import run


def check(platform: str, folder: Path, *more: str) -> tuple[int, Card, str]:
    """The exit status, the score card, and what is printed."""
    file = folder / "card.json"
    arguments = ["check", platform, "--json", str(file), *more]
    done = run(f"from polyax.__main__ import main; raise SystemExit(main({arguments!r}))", timeout=600)
    return done.returncode, Card.from_json(file.read_text()), done.stdout


@pytest.mark.parametrize("name", ["reference", "cpu", "opencl"])
def test_several_devices(name: str, tmp_path: Path) -> None:
    """In a process of its own, which has several; all other levels run in the tests' own processes.

    Platforms of which the tests run samples are graded in turn, each whole (``.ci/run``).
    """
    if name != "reference":
        pytest.importorskip(f"polyax_{name}.backend")
    status, card, shown = check(name, tmp_path, "--level", str(LEVELS.index("spmd")))
    assert status == 0 and not card.failures, shown
    score = card.levels["spmd"]
    assert score.passed > 10 and not score.skipped and "spmd" in shown


def test_speed_is_told_and_not_judged(tmp_path: Path) -> None:
    status, card, shown = check("reference", tmp_path, "--level", str(LEVELS.index("speed")))
    assert status == 0 and len(card.speed) == card.levels["speed"].passed > 5
    assert all(ratio > 0 for ratio in card.speed.values()) and shown.count("x NumPy") == len(card.speed)


def test_no_two_tests_of_a_level_share_a_name() -> None:
    """Gaps and cards name them by level and test."""
    for level in LEVELS:
        names = [re.findall(r"^def (test_\w+)", f.read_text(), re.M) for f in (FOLDER / level).glob("test_*.py")]
        found = [name for of_file in names for name in of_file]
        assert found and len(set(found)) == len(found), level
