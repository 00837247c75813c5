"""What MkDocs asks while it builds the site: pages that aren't files of ``docs/``, and links to them."""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import File, Files

import links
import reference


def on_config(config: Any) -> Any:
    """Adds the pages of the reference, and of the repository, to the contents, and takes out the
    theme's page for missing pages, which servers alone show: it names files from a root that these don't have."""
    config.theme.static_templates.discard("404.html")
    config.nav += [
        {"API reference": [{_title(place): place} for place in reference.pages()]},
        {"Repository": [{source: links.uri(source)} for source in _outside() if source != "README.md"]},
    ]
    return config


def on_files(files: Files, config: Any) -> Files:
    made = {links.uri(source): links.page(source) for source in _outside()} | reference.pages()
    for place, text in made.items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Pages of ``docs/`` link to files as they lie in the repository."""
    made = page.file.generated_by is not None
    return markdown if made else links.for_site(markdown, f"docs/{page.file.src_uri}")


def _outside() -> list[str]:
    docs = sorted((links.ROOT / "docs").rglob("*.md"))
    return links.outside(["README.md", *(p.relative_to(links.ROOT).as_posix() for p in docs)])


def _title(place: str) -> str:
    name = place.removeprefix("reference/").removesuffix(".md")
    return "Modules" if name == "index" else name
