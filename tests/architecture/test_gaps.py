"""Gap files are honest: every gap says what it is, of which kind, and why, and none is missing or closed."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import polyax  # noqa: F401  (defines the primitives)
from polyax.control.platforms import platform_index_p
from polyax.engines.host import LIBRARY
from polyax.ir.primitive import PRIMITIVES
from polyax.ops.keys import ON_WORDS
from polyax_cpu.convolutions.lowerings import PARTS
from polyax_kernels.lower.complexes.functions import FORMULAS
from polyax_kernels.lower.complexes.library import library_p
from polyax_kernels.lower.rules import SHARED
from specs.table import OF_REFS
from support.sources import ROOT

Gap = dict[str, Any]
FILES = sorted(ROOT.glob("*/gaps.toml")) + sorted(ROOT.glob("*/*/gaps.toml"))


def gaps_of(file: Path) -> list[Gap]:
    return tomllib.loads(file.read_text())["gap"]


def test_the_teaching_backend_has_one() -> None:
    assert ROOT / "plugins/hello_c/gaps.toml" in FILES


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.parent.name)
def test_each_gap_has_a_kind_and_a_reason(file: Path) -> None:
    gaps = gaps_of(file)
    assert len({gap["what"] for gap in gaps}) == len(gaps)
    for gap in gaps:
        assert gap["kind"] in ("notimpl", "notyet", "never"), gap
        assert len(gap["reason"].split()) >= 5, gap


def test_each_primitive_runs_on_every_backend_made_of_kernels_or_is_a_gap() -> None:
    """By a rule that all share, or through NumPy's libraries on purpose; what is neither warns users at run time."""
    declared = {name for gap in gaps_of(ROOT / "plugins/kernels/gaps.toml") for name in gap["primitives"]}
    made_of_others = {p.name for p in PRIMITIVES if p.decompose is not None} - declared  # custom_lin says why it isn't
    made_of_others |= {p.name for p in (*ON_WORDS, *PARTS, library_p, platform_index_p)}
    made_of_others |= set(OF_REFS)  # which are gone before anything is compiled
    runs = SHARED.keys() | FORMULAS.keys() | LIBRARY | made_of_others
    lacking = {p.name for p in PRIMITIVES if not p.name.startswith("test_")} - runs
    assert lacking == declared, f"not declared: {lacking - declared}; closed, or no primitive: {declared - lacking}"
