"""Checks the site that was built: each link and each picture within it leads to a file, each anchor to a place there.

python docs/_site/built.py [FOLDER]
"""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from links import ROOT

SITE = ROOT / "build/site"


class _Page(HTMLParser):
    """What a page links to, and the places that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = {"", "__top"}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.links.append(value)
            elif name in ("id", "name") and value is not None:
                self.places.add(value)


def pages(site: Path) -> dict[str, _Page]:
    """By where they are."""
    found: dict[str, _Page] = {}
    for file in sorted(site.rglob("*.html")):
        found[file.relative_to(site).as_posix()] = page = _Page()
        page.feed(file.read_text(encoding="utf-8"))
    return found


def broken(site: Path) -> Iterator[str]:
    """Each link that leads nowhere, with the page that it is on; links to other sites aren't followed."""
    known = pages(site)
    for here, page in known.items():
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            there = _target(here, unquote(parts.path))
            if not (site / there).exists():
                yield f"{here} links to {there}"
            elif there in known and unquote(parts.fragment) not in known[there].places:
                yield f"{here} links to {there}#{parts.fragment}"


def _target(here: str, path: str) -> str:
    """Pages work without a server, so paths are from page to page."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(here), path)) if path else here


def main() -> int:
    site = Path(sys.argv[1]) if len(sys.argv) > 1 else SITE
    found = list(broken(site))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
