"""Gap files are honest: every gap says what it is, of which kind, and why."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from support.sources import ROOT

FILES = sorted(ROOT.glob("*/gaps.toml")) + sorted(ROOT.glob("*/*/gaps.toml"))


def test_the_teaching_backend_has_one() -> None:
    assert ROOT / "plugins/hello_c/gaps.toml" in FILES


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.parent.name)
def test_each_gap_has_a_kind_and_a_reason(file: Path) -> None:
    gaps = tomllib.loads(file.read_text())["gap"]
    assert len({gap["what"] for gap in gaps}) == len(gaps)
    for gap in gaps:
        assert gap["kind"] in ("notimpl", "notyet", "never"), gap
        assert len(gap["reason"].split()) >= 5, gap
