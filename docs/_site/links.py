"""Where links of documents lead: from files of the repository to pages of the site. Knows nothing of what builds it.

The README is the site's first page, what is in ``docs/`` is where it is there, and a file elsewhere in the repository
that a page links to becomes a page under ``repository/``: as it is if it is Markdown, else as a listing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCED = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"(?<=\]\()([^)\s#:]*)(#[^)\s]*)?(?=\))")
HEADING = re.compile(r"^#{1,6} +(.*?)(?: *\{ *#([\w.-]+)[^}]*\})? *$", re.MULTILINE)


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """``text`` with ``change`` applied to what is no code."""
    for code in (FENCED, INLINE):
        if found := code.search(text):
            before, after = text[: found.start()], text[found.end() :]
            return outside_code(before, change) + found[0] + outside_code(after, change)
    return change(text)


def links(text: str) -> list[tuple[str, str]]:
    """(path, anchor) of each link within the repository, of pictures too; the path is empty for a place on the page."""
    found: list[tuple[str, str]] = []

    def collect(prose: str) -> str:
        found.extend((path, anchor.lstrip("#")) for path, anchor in LINK.findall(prose) if path or anchor)
        return prose

    outside_code(text, collect)
    return found


def slug(heading: str) -> str:
    """The name of a heading's place: as Python-Markdown makes it, which GitHub does as well for such headings."""
    kept = re.sub(r"[^\w\s-]", "", heading).strip().lower()
    return re.sub(r"[-\s]+", "-", kept)


def anchors(text: str) -> set[str]:
    """The places on a page that links may name."""
    return {given or slug(title) for title, given in HEADING.findall(FENCED.sub("", text))}


def target(source: str, link: str) -> str:
    """The file of the repository that a link in ``source`` leads to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link)) if link else source


def uri(source: str) -> str:
    """Where the site has a file of the repository."""
    if source == "README.md":
        return "index.md"
    if source.startswith("docs/"):
        return source.removeprefix("docs/")
    return f"repository/{source}" if source.endswith(".md") else f"repository/{source}.md"


def for_site(text: str, source: str) -> str:
    """``text`` of the file ``source``, with links that lead to pages of the site."""
    here = posixpath.dirname(uri(source))

    def moved(link: re.Match[str]) -> str:
        path, anchor = link[1], link[2] or ""
        return posixpath.relpath(uri(target(source, path)), here or ".") + anchor if path else anchor

    return outside_code(text, lambda prose: LINK.sub(moved, prose))


def outside(pages: Iterable[str]) -> list[str]:
    """Files outside of ``docs/`` that are on the site: those that pages link to, and those that these link to."""
    found: dict[str, None] = {}
    waiting = list(pages)
    while waiting:
        source = waiting.pop()
        for path, _ in links((ROOT / source).read_text(encoding="utf-8")) if source.endswith(".md") else ():
            file = target(source, path)
            if not file.startswith("docs/") and file not in found and (ROOT / file).is_file():
                found[file] = None
                waiting.append(file)
    return sorted({*found, "README.md"})


def page(source: str) -> str:
    """The Markdown of a file outside of ``docs/``, with links for the site."""
    text = (ROOT / source).read_text(encoding="utf-8")
    if source.endswith(".md"):
        return for_site(text, source)
    language = {".py": "python", ".toml": "toml", ".yml": "yaml"}.get(Path(source).suffix, "text")
    return f"# {source}\n\n````{language}\n{text}````\n"
