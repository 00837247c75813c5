"""The platforms of this repository pass the suite."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("polyax_conformance")

from polyax_conformance.card import LEVELS, Card
from support.process import run


def check(platform: str, folder: Path, *more: str) -> tuple[int, Card, str]:
    """The exit status, the score card, and what is printed."""
    file = folder / "card.json"
    arguments = ["check", platform, "--json", str(file), *more]
    done = run(f"from polyax.__main__ import main; raise SystemExit(main({arguments!r}))", timeout=600)
    return done.returncode, Card.from_json(file.read_text()), done.stdout


@pytest.mark.parametrize("name", ["reference", "cpu", "hello_c", "opencl"])
def test_a_platform_passes(name: str, tmp_path: Path) -> None:
    if name != "reference":
        pytest.importorskip(f"polyax_{name}")
    status, card, shown = check(name, tmp_path)
    assert status == 0 and not card.failures, shown
    assert card.level == len(LEVELS) - 1 and f"reached: level {card.level}" in shown
    assert all(score.passed > 10 for score in card.levels.values())
