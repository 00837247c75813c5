"""Documents keep their word: code blocks run, the README's example is the file, counts and links are right."""

from __future__ import annotations

import re

import pytest

from polyax_kernels.pipeline import TO_GRAPH, TO_PLAN
from support.process import output
from support.sources import PACKAGES, ROOT

PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")] + sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `([\w./]+\.py)` \| (\d+) \|", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)\)")
PATH = re.compile(r"`((?:core|plugins|backends_\w+|tests|docs|examples|benchmarks)/[\w./-]+)`")
PASS = re.compile(r"^\| ([a-z ]+) \| \w+ \| \w+ \| .* \| `([\w/]+\.py)` \|$", re.MULTILINE)
ORDER = ROOT / "CONTRIBUTING.md"
FIRST_EXAMPLE = (ROOT / "examples/digits.py").read_text()

pages = pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)


@pages
def test_code_blocks_run(page) -> None:
    program = "\n".join(b for b in BLOCK.findall(page.read_text()) if b != FIRST_EXAMPLE)
    devices = "8" if page.name == "sharding.md" else "1"
    output(program, POLYAX_HOST_FALLBACK="warn", POLYAX_NUM_CPU_DEVICES=devices)


def test_first_example_of_the_readme_is_the_file() -> None:
    assert BLOCK.findall((ROOT / "README.md").read_text())[0] == FIRST_EXAMPLE


@pages
def test_links_lead_somewhere(page) -> None:
    for target in LINK.findall(BLOCK.sub("", page.read_text())):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pages
def test_files_that_are_named_exist(page) -> None:
    """Whole paths, from the repository's root."""
    named = set(PATH.findall(BLOCK.sub("", page.read_text())))
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_the_page_on_passes_lists_them() -> None:
    """In their order, each with the module that its function comes from."""
    rows = PASS.findall((ROOT / "docs/passes.md").read_text())
    assert [name for name, _ in rows] == [p.name for p in (*TO_GRAPH, *TO_PLAN)]
    assert all((PACKAGES["polyax_kernels"] / file).exists() for _, file in rows)


def lines_of(name: str) -> int:
    return len((ROOT / name).read_text().splitlines())


def test_reading_order_counts_lines() -> None:
    rows = ROW.findall(ORDER.read_text())
    assert len(rows) > 10
    for name, told in rows:
        lines = lines_of(name)
        assert abs(lines - int(told)) <= max(10, lines // 5), f"{name} has {lines} lines, not {told}: `make snapshot`"


if __name__ == "__main__":
    ORDER.write_text(ROW.sub(lambda row: f"| `{row[1]}` | {lines_of(row[1])} |", ORDER.read_text()))
