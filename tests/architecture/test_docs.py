"""Documents keep their word: code blocks run, the README's example is the file, counts and links are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from links import anchors, links
from polyax_kernels.pipeline import AFTER_FUSERS, TO_GRAPH, TO_PLAN
from support.printed import words
from support.process import output
from support.sources import PACKAGES, ROOT, all_modules, modules

PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")] + sorted((ROOT / "docs").rglob("*.md"))
READMES = {package: folder.parents[1] / "README.md" for package, folder in PACKAGES.items()}
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(BLOCK.pattern + r"(?:\n\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
END_OF_BLOCK = "-- end of a block --"
ON_EIGHT_DEVICES = ("sharding.md", "devices.md", "vmap-and-pmap.md")
ROW = re.compile(r"^\| `([\w./]+\.py)` \| (\d+) \|", re.MULTILINE)
PATH = re.compile(r"`((?:core|plugins|backends_\w+|tests|docs|examples|benchmarks)/[\w./-]+)`")
PYTHON = re.compile(r"`([\w./]+\.py)`")
PASS = re.compile(r"^\| ([a-z ]+) \| \w+ \| \w+ \| .* \| `([\w/]+\.py)` \|$", re.MULTILINE)
EXAMPLES = [
    f.relative_to(ROOT)
    for folder in ("examples", "benchmarks", "tests", "docs/_site")
    for f in (ROOT / folder).rglob("*.py")
]
ORDER = ROOT / "CONTRIBUTING.md"
FIRST_EXAMPLE = (ROOT / "examples/digits.py").read_text()

pages = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


@pages
def test_code_blocks_run_and_print_what_stands_below_them(page: Path) -> None:
    """A page is one program. In tutorials whatever is printed stands there."""
    blocks = [(code, told) for code, told in PRINTED.findall(page.read_text()) if code != FIRST_EXAMPLE]
    program = "".join(f"{code}\nprint({END_OF_BLOCK!r}, flush=True)\n" for code, _ in blocks)
    devices = "8" if page.name in ON_EIGHT_DEVICES else "1"
    printed = output(program, POLYAX_HOST_FALLBACK="warn", POLYAX_NUM_CPU_DEVICES=devices).split(END_OF_BLOCK)
    for (code, told), text in zip(blocks, printed):
        if told or page.parent.name == "tutorials":
            assert words(text) == words(told), f"{page.name}: this block prints something else:\n{code}"


def test_first_example_of_the_readme_is_the_file() -> None:
    assert BLOCK.findall((ROOT / "README.md").read_text())[0] == FIRST_EXAMPLE


@pages
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in links(page.read_text()):
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(file.read_text()), f"{page.name} links to {target}#{anchor}"


@pages
def test_files_that_are_named_exist(page: Path) -> None:
    """Whole paths, from the repository's root."""
    named = set(PATH.findall(BLOCK.sub("", page.read_text())))
    assert {name for name in named if not (ROOT / name).exists()} == set()


@pages
def test_modules_that_are_named_exist(page: Path) -> None:
    """Files of Python by the last parts of their path: ``gpu/rows.py``."""
    assert strangers(page, [m.path.relative_to(ROOT) for m in all_modules()] + EXAMPLES) == set()


@pytest.mark.parametrize("package", READMES)
def test_a_readme_names_modules_of_its_package(package: str) -> None:
    """Or whole paths: from the package on, or from the repository's root."""
    own = [m.path.relative_to(PACKAGES[package]) for m in modules(package)]
    whole = [m.path.relative_to(PACKAGES[name].parent) for name in PACKAGES for m in modules(name)]
    left = strangers(READMES[package], own)
    assert {name for name in left if Path(name) not in whole and not (ROOT / name).exists()} == set()


def strangers(page: Path, files: list[Path]) -> set[str]:
    """The names of Python files there that none of ``files`` ends in."""
    named = set(PYTHON.findall(BLOCK.sub("", page.read_text())))
    return {name for name in named if not any(f"/{f}".endswith(f"/{name}") for f in files)}


def test_the_page_on_architecture_lists_the_modules_of_the_gpu_path() -> None:
    """All, by their names or their folders'."""
    path = section((ROOT / "docs/architecture.md").read_text(), "The GPU path")
    named = {
        name.rstrip("/")
        for row in re.findall(r"^\| (`.*?`) \|", path, re.MULTILINE)
        for name in re.findall(r"`(.*?)`", row)
    }
    gpu = PACKAGES["polyax_kernels"] / "gpu"
    assert named == {f.stem for f in gpu.iterdir() if not f.name.startswith("__")}


def section(page: str, title: str) -> str:
    return page.split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_page_on_passes_lists_them() -> None:
    """In their order, each with the module that its function comes from."""
    rows = PASS.findall((ROOT / "docs/passes.md").read_text())
    assert [name for name, _ in rows] == [p.name for p in (*TO_GRAPH, *AFTER_FUSERS, *TO_PLAN)]
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
