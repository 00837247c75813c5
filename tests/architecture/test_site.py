"""The site is whole: every page is in its contents, every link leads to a page of it, and nothing has to be fetched.

MkDocs isn't needed here; what it is told is.
"""

from __future__ import annotations

import re

import pytest

import reference
from links import ROOT, anchors, for_site, links, outside, page, target, uri
from polyax import hookimpl, numpy

SETTINGS = (ROOT / "mkdocs.yml").read_text()
DOCS = [p.relative_to(ROOT).as_posix() for p in sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture(scope="module")
def site() -> dict[str, str]:
    """Markdown by place."""
    made = {uri(source): for_site((ROOT / source).read_text(), source) for source in DOCS}
    return made | {uri(source): page(source) for source in outside(["README.md", *DOCS])} | reference.pages()


def test_contents_name_every_page_once() -> None:
    named = re.findall(r": ([\w./-]+\.md)$", SETTINGS, re.MULTILINE)
    assert sorted(named) == sorted(["index.md", *(uri(source) for source in DOCS)])


def test_links_lead_to_pages_and_places_of_the_site(site: dict[str, str]) -> None:
    places = {place: anchors(text) for place, text in site.items()}
    for here, text in site.items():
        for path, anchor in links(text):
            there = target(here, path)
            known = there in site or (ROOT / "docs" / there).is_file()
            assert known, f"{here} links to {there}"
            assert not anchor or anchor in places[there], f"{here} links to {there}#{anchor}"


def test_nothing_is_fetched() -> None:
    assert "font: false" in SETTINGS
    assert re.findall(r"https?://\S+", SETTINGS) == []


def test_each_public_name_has_an_entry(site: dict[str, str]) -> None:
    for module, names in reference.modules().items():
        for name in names:
            assert f"### {name} {{ #{module}.{name} .name }}" in site[f"reference/{module}.md"]


def test_entries_show_nothing_of_python_or_of_this_process(site: dict[str, str]) -> None:
    for place in (f"reference/{module}.md" for module in reference.modules()):
        text = site[place]
        found = re.findall(r".*(?: at 0x|ForwardRef|<locals>|<class |<object|Built-in|:func:|Re-exports|====).*", text)
        assert not [line for line in found if not line.lstrip().startswith(("=", "<class 'float'>"))], place
        assert not re.findall(r"^- `\w+\((?:self|cls)\b.*", text, re.MULTILINE), place


def test_signatures_are_what_users_write() -> None:
    entry = lambda name: reference.entry(*name.rsplit(".", 1))
    assert "W_init=variance_scaling" in entry("polyax.example_libraries.stax.Dense")
    assert "concrete=...," in entry("polyax.ad_checkpoint.checkpoint")
    assert "GetAttrKey(name: str)\n" in entry("polyax.tree_util.GetAttrKey")
    assert "KeyPath = tuple[Any, ...]\n```\n\n\n" in entry("polyax.tree_util.KeyPath")
    assert "ResizeMethod\n```" in entry("polyax.image.ResizeMethod")
    assert "- `NEAREST`" in entry("polyax.image.ResizeMethod")


def test_powers_make_nothing_bold() -> None:
    assert reference.prose("x**(a - 1) (1 - x)**2, ``y**2``") == r"x\*\*(a - 1) (1 - x)\*\*2, `y**2`"


def test_tables_stay_tables() -> None:
    told = reference.prose("Kinds:\n\n==  ===\na   ``b``\n==  ===\n1   2\n==  ===\n\nMore.")
    assert told == "Kinds:\n\n```text\n==  ===\na     b  \n==  ===\n1   2\n==  ===\n```\n\n\nMore."


def test_links_outside_code_move_with_the_page() -> None:
    text = "[a](docs/x.md#b), [c](examples/d.py), `[e](docs/f.md)`, [g](https://h.i)\n\n```python\nk[0](docs)\n```\n"
    assert for_site(text, "README.md") == (
        "[a](x.md#b), [c](repository/examples/d.py.md), `[e](docs/f.md)`, [g](https://h.i)\n\n```python\nk[0](docs)\n```\n"
    )
    moved = for_site("[r](../../README.md), [s](t.svg), [u](#v)", "docs/w/x.md")
    assert moved == "[r](../index.md), [s](t.svg), [u](#v)"


def test_signatures_say_what_a_call_may_say() -> None:
    assert reference.signature("cumsum", numpy.cumsum) == "cumsum(a, axis=None, dtype=None, out=None)"
    many = lambda a, /, second_of_the_names=None, *, third_of_the_names=None, last_of_the_names=None, z=0: a
    lines = reference.signature("many", many).splitlines()
    assert lines[:5] == ["many(", "    a,", "    /,", "    second_of_the_names=None,", "    *,"]


def test_docstrings_become_markdown() -> None:
    doc = "Sums ``x``.\n\nArgs:\n  x, y: some\n    numbers.\n\nRaises:\n  TypeError: no.\n\n>>> 1 + 1\n2"
    assert reference.prose(doc).split("\n\n") == [
        "Sums `x`.",
        "**Args**",
        "- `x`, `y`: some numbers.",
        "**Raises**",
        "- `TypeError`: no.",
        "```pycon\n>>> 1 + 1\n2\n```\n",
    ]


def test_only_names_of_jax_link_to_it() -> None:
    assert reference.jax_page("polyax.numpy", "cumsum", numpy.cumsum) == reference.JAX.format(
        "_autosummary/jax.numpy.cumsum"
    )
    assert reference.jax_page("polyax", "hookimpl", hookimpl) is None
    assert reference.jax_page("polyax.numpy", "pi", numpy.pi) is None
