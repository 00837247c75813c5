"""The suite itself: gaps are strict, broken backends fail, cards are written and read."""

from __future__ import annotations

import io
import os
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("polyax_conformance")

from plugins.faults.broken import Working, backend, giving, launching

from polyax.__main__ import main
from polyax.backend import HostBuffer, PluginError, UsageError
from polyax_conformance.card import LEVELS, Card, Score
from polyax_conformance.gaps import read_gaps
from polyax_conformance.parallel import grade_side_by_side
from polyax_conformance.progress import ProgressLine
from polyax_conformance.suite import FOLDER, grade
from support.process import finished

GAP = """
    [[gap]]
    what = "rounding"
    kind = "notimpl"
    reason = "it rounds down"
    tests = ["scalars::test_rounding*"]
"""


def gaps(folder: Path, text: str = GAP) -> Any:
    file = folder / "gaps.toml"
    file.write_text(text)
    return read_gaps(file)


# --- gaps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, told",
    [
        (GAP.replace("kind", "kinds"), "gap 0 .rounding. has kinds; a gap has what, kind, reason, tests, primitives"),
        (GAP.replace("notimpl", "later"), "is of kind 'later'; kinds are notimpl, notyet, never"),
        (GAP.replace("it rounds down", ""), "has no reason"),
        (GAP.replace("it rounds down", "  "), "has no reason: give a text"),
        (GAP.replace('"it rounds down"', '["it rounds down"]'), "has no reason: give a text"),
        ("[gaps]", "has gaps; gaps are written as"),
        ("[[gap", "can't be read as gaps"),
        ("gap = 3", r"has gap = 3; gaps are written as \[\[gap\]\]"),
        ("gap = [3]", r"has gap = \[3\]; gaps are written as"),
        (GAP.replace('["scalars::test_rounding*"]', '"scalars::*"'), "has tests = 'scalars::.', not a list of texts"),
        (GAP.replace("scalars::", "scalers::"), "names 'scalers::test_rounding.'; tests are level::name, .* scalars,"),
        (GAP.replace("scalars::", ""), "names 'test_rounding.'; tests are level::name"),
        (GAP + 'primitives = ["sinn"]', "names primitives that aren't: sinn; polyax.backend.PRIMITIVES has all"),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        gaps(tmp_path, text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read as gaps: .*No such file"):
        read_gaps(tmp_path / "gaps.toml")


def test_files_are_read_as_toml_is_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "gaps.toml"
    file.write_text(GAP.replace("it rounds down", "es rundet ab, größer nie"), "utf-8-sig")
    assert read_gaps(file)[0].reason == "es rundet ab, größer nie"
    file.write_bytes(GAP.replace("it rounds down", "größer").encode("latin-1"))
    with pytest.raises(UsageError, match=r"gaps.toml can't be read as gaps: 'utf-8' codec"):
        read_gaps(file)


@pytest.mark.parametrize("option", ["--json", "--svg"])
def test_where_cards_cannot_be_written_nothing_is_graded(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in (tmp_path / "nowhere/card", tmp_path):
        assert main(["check", "reference", "--level", "0", option, str(file)]) == 2
        assert f"{file} can't be written: name a file in a folder" in capsys.readouterr().err


def test_a_gap_that_closed_fails(tmp_path: Path) -> None:
    card = grade("reference", [1], gaps(tmp_path), "rounding")
    assert card.levels["scalars"] == Score(failed=1)
    assert "scalars::test_rounding_halves_to_even[reference]: [XPASS(strict)] notimpl: it rounds down" in card.failures


def test_a_gap_that_names_no_test_is_an_error(tmp_path: Path) -> None:
    misspelt = gaps(tmp_path, GAP.replace("test_rounding", "test_runding"))
    with pytest.raises(UsageError, match=r"gaps that name no test: 'scalars::test_runding\*' of 'rounding'"):
        grade("reference", (), misspelt)


def negated(outs: list[HostBuffer]) -> list[HostBuffer]:
    return [HostBuffer(np.where(b.data == 2, 3, b.data).astype(b.data.dtype)) for b in outs]


def test_a_gap_that_is_one_counts_as_one(tmp_path: Path) -> None:
    with backend(giving(negated)):
        assert grade("broken", [1], gaps(tmp_path), "rounding").levels["scalars"] == Score(gaps=1)
        assert grade("broken", [1], (), "rounding").levels["scalars"] == Score(failed=1)


# --- broken backends --------------------------------------------------------------------------------------------------


def overwriting(right: Any, buffers: Any, queue: Any) -> Any:
    outs, token = right(buffers, queue)
    for b in buffers:
        if b.data.flags.writeable:
            b.data[...] = 0
    return outs, token


def test_one_that_writes_to_its_inputs() -> None:
    with backend(launching(overwriting)):
        failed = " ".join(grade("broken", [0], (), "inputs or later").failures)
    assert "contract::test_inputs_stay_as_they_are" in failed and "test_results_are_not_overwritten" in failed


def test_one_that_works() -> None:
    with backend(Working):
        card = grade("broken", [0])
    assert not card.failures and card.plugin == "plugin 'broken' of polyax-broken 1.2.3"


# --- commands and cards -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["check", "nothere"], "Unknown backend nothere"),
        (["check", "reference", "--level", "9"], f"there is no level 9; levels are 0 .contract. to {len(LEVELS) - 1}"),
        (["check", "reference", "--gaps", "nothere.toml"], "nothere.toml can't be read as gaps"),
    ],
)
def test_what_cannot_be_done_is_said(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("polyax check: ") and told.replace(".contract.", "(contract)") in error


@pytest.mark.parametrize("jobs", ["0", "-1", "many"])
def test_a_number_of_processes_that_is_none(jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["check", "reference", f"-n={jobs}"])
    assert f"'{jobs}' is no number of processes" in capsys.readouterr().err


def test_levels_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some = ["check", "reference", "--level", "0", "--level", "1", "--only", "rounding or inputs"]
    assert main([*some, "-n", "2", "--json", str(tmp_path / "card.json")]) == 0
    found = Card.from_json((tmp_path / "card.json").read_text())
    assert found == grade("reference", [0, 1], (), "rounding or inputs")
    assert list(found.levels) == ["contract", "scalars"] and "0 contract" in capsys.readouterr().out


def test_gaps_are_read_before_levels_run_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gaps.toml"
    file.write_text(GAP.replace("test_rounding", "test_runding"))
    assert main(["check", "reference", "-n", "2", "--gaps", str(file)]) == 2
    assert "gaps that name no test: 'scalars::test_runding*'" in capsys.readouterr().err


def test_a_level_that_cannot_run_is_told() -> None:
    with pytest.raises(UsageError, match="Unknown backend nothere"):
        grade_side_by_side("nothere", [0, 1], 2, [], None)


def test_how_far_it_is_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    grade("reference", [1], (), "rounding", lambda *now: told.append(now))
    assert told == [("scalars", 1, 1)]
    file = io.StringIO()
    with ProgressLine(file) as line:
        line("scalars", 3, 4)
        line("scalars", 4, 4)  # too soon
    shown = file.getvalue().split("\r")
    assert "3/4 scalars" in shown[1] and "4/4" not in file.getvalue() and not shown[-1].strip()


def card() -> Card:
    levels = {name: Score(passed=10) for name in LEVELS}
    return Card("mine", "plugin 'mine' of polyax-mine 1.0", "0.1.0", levels, speed={"x + 1": 2.5})


def test_levels_are_reached_one_after_the_other() -> None:
    whole, broken, gap = card(), card(), card()
    broken.levels["contract"].failed = 1
    gap.levels["contract"].gaps = 10
    assert (whole.level, broken.level, gap.level) == (len(LEVELS) - 1, -1, len(LEVELS) - 1)
    assert whole.share == 1 and gap.share < 1
    assert "no level" in broken.text() and f"reached: level {whole.level}" in whole.text()


def test_cards_are_written_and_read() -> None:
    assert Card.from_json(card().to_json()) == card()
    badge = ElementTree.fromstring(card().svg())
    assert [t.text for t in badge.iter("{http://www.w3.org/2000/svg}text")] == [
        "polyax mine",
        f"level {card().level} · 100%",
    ]
    for text in ("", "[]", "{}", '{"level": 0, "share": 1}'):
        with pytest.raises(PluginError, match="this is no score card"):
            Card.from_json(text)


WATCH = """
import os

import pytest

import polyax


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    told = polyax.config.checks, polyax.config.host_fallback, os.environ.get("POLYAX_HOST_FALLBACK")
    yield
    print("settings", *told)
"""


def test_levels_are_strict_whoever_runs_them(tmp_path: Path) -> None:
    """With pytest alone, from another folder, and by somebody whose own settings are lenient."""
    (tmp_path / "watching.py").write_text(WATCH)
    level = f"{FOLDER}/scalars"
    words = ["-m", "pytest", "-q", "-s", "-p", "watching", "-p", "no:cacheprovider", "--platforms=reference", level]
    lenient = {"POLYAX_HOST_FALLBACK": "allow", "POLYAX_CHECKS": "0", "PYTHONPATH": str(tmp_path)}
    done = finished([sys.executable, *words, "-k", "rounding"], 120, os.environ | lenient, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "settings True error error" in done.stdout
