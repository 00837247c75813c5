"""Documents keep their word: code blocks run, the README's example is the file, counts and links are right."""

from __future__ import annotations

import re

import pytest

from support.process import output
from support.sources import ROOT

PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")] + sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `([\w./]+\.py)` \| (\d+) \|", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)\)")
FIRST_EXAMPLE = (ROOT / "examples/digits.py").read_text()

pages = pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)


@pages
def test_code_blocks_run(page) -> None:
    program = "\n".join(b for b in BLOCK.findall(page.read_text()) if b != FIRST_EXAMPLE)
    output(program, POLYAX_HOST_FALLBACK="warn")


def test_first_example_of_the_readme_is_the_file() -> None:
    assert BLOCK.findall((ROOT / "README.md").read_text())[0] == FIRST_EXAMPLE


@pages
def test_links_lead_somewhere(page) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_reading_order_counts_lines() -> None:
    rows = ROW.findall((ROOT / "CONTRIBUTING.md").read_text())
    assert len(rows) > 10
    for name, told in rows:
        lines = len((ROOT / name).read_text().splitlines())
        assert abs(lines - int(told)) <= max(10, lines // 5), f"{name} has {lines} lines, CONTRIBUTING.md says {told}"
