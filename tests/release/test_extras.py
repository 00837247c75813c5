"""Each extra can be had from a checkout, and what an installation answers is judged."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest

from support.sources import ROOT

EXTRAS = set(metadata("polyax").get_all("Provides-Extra") or ())


@pytest.fixture
def extras(script: Callable[[str], Any]) -> Any:
    return script("extras")


def test_the_workspace_has_the_extras_of_the_core() -> None:
    workspace = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert workspace["optional-dependencies"] == {extra: [f"polyax[{extra}]"] for extra in EXTRAS}


def test_each_question_is_of_an_extra_and_has_an_answer(extras: Any) -> None:
    assert set(extras.QUESTIONS) == EXTRAS == set(extras.ANSWERS)


@pytest.mark.parametrize("extra", ["cpu", "mpi", "inspect", "wasm"])
def test_this_environment_answers_as_it_should(extras: Any, extra: str) -> None:
    assert any(text in extras.answer(Path(sys.executable), extra) for text in extras.ANSWERS[extra])


def test_a_wrong_answer_fails(extras: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(extras, "WAYS", {"pip": lambda extra, folder: Path(sys.executable)})
    monkeypatch.setattr(extras, "QUESTIONS", {"cpu": "raise SystemExit('no module of that name')"})
    monkeypatch.setattr(sys, "argv", ["extras.py"])
    assert extras.main() == 1
    assert "no module of that name  WRONG" in capsys.readouterr().out
