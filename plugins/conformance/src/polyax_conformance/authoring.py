"""New plugins: copies of the projects in ``templates``, with the author's name in the place of ``newcomer``.

A project is made of several folders of templates, one laid over the other, and of the files beside these folders. All
are what they look like: they can be read and checked as they stand.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from polyax.backend import UsageError, registry

TEMPLATES = Path(__file__).with_name("templates")
NEWCOMER = "newcomer"
"""The name in the templates."""
BACKENDS: Mapping[str, tuple[str, ...]] = {
    "host": ("backend", "kernels", "host"),
    "gpu": ("backend", "kernels", "gpu"),
    "graph": ("backend", "graph"),
}
"""The folders that a backend is made of, by its kind."""
KINDS = {
    "host": "kernels in a language of yours, on the host's memory",
    "gpu": "devices with memory and a queue of their own, in a language like C",
    "graph": "an engine that takes whole programs",
}
PARTS: Mapping[str, tuple[str, ...]] = {"lowering": ("part", "lowering"), "fuser": ("part", "fuser")}
RESERVED = ("any", "reference", NEWCOMER)
WRITTEN = (".py", ".toml", ".md", ".yml")
HIDDEN = {"gitignore": ".gitignore"}
"""Files that would mean something where the templates are."""


def new_backend(name: str, kind: str, parent: Path) -> Path:
    """Writes the project of a backend; returns its folder.

    Raises:
      UsageError: the name can't be had, there is no such kind, or the folder exists.
    """
    if kind not in BACKENDS:
        known = "; ".join(f"{k} ({meaning})" for k, meaning in KINDS.items())
        raise UsageError(f"there is no kind {kind!r} of backend; kinds are: {known}")
    return write(name, BACKENDS[kind], parent)


def new_part(name: str, part: str, parent: Path) -> Path:
    """Writes the project of a lowering or a fuser; returns its folder.

    Raises:
      UsageError: the name can't be had, or the folder exists.
    """
    return write(name, PARTS[part], parent)


def write(name: str, folders: tuple[str, ...], parent: Path) -> Path:
    """Writes a project made of ``folders`` of the templates.

    Raises:
      UsageError: the name can't be had, or the folder exists.
    """
    if reason := why_not_named(name):
        raise UsageError(reason)
    project = parent / f"polyax-{name.replace('_', '-')}"
    if project.exists():
        raise UsageError(f"{project} exists already: choose another name, or another place by --into")
    for file, place in files(folders):
        path = project / renamed(place, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(renamed(file.read_text(), name))
    return project


def files(folders: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
    """Those of a project, and where they are in it; without what running templates leaves behind."""
    for file in TEMPLATES.iterdir():
        if file.is_file():
            yield file, HIDDEN.get(file.name, file.name)
    for folder in folders:
        for file in (TEMPLATES / folder).rglob("*"):
            if file.suffix in WRITTEN:
                yield file, str(file.relative_to(TEMPLATES / folder))


def renamed(text: str, name: str) -> str:
    """``text`` of a template in the words of a plugin called ``name``.

    >>> renamed("polyax-newcomer: polyax_newcomer.backend.NewcomerBackend", "my_chip")
    'polyax-my-chip: polyax_my_chip.backend.MyChipBackend'
    """
    camel = "".join(word.capitalize() for word in name.split("_"))
    words = {f"-{NEWCOMER}": f"-{name.replace('_', '-')}", NEWCOMER.capitalize(): camel, NEWCOMER: name}
    return re.sub("|".join(words), lambda found: words[found[0]], text)


def why_not_named(name: str) -> str | None:
    """Why a plugin can't be called so, if so, and what can be done."""
    if not re.fullmatch(r"[a-z](_?[a-z0-9])*", name) or keyword.iskeyword(name):
        near = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_0123456789")
        hint = f", such as {near}" if near and near != name else ""
        return f"{name!r} can't be the name of a plugin: take small letters, digits and single _ between{hint}"
    if name in RESERVED or name in registry.known_names():
        return f"the name {name!r} is taken by a platform; choose another"
    for plugin in registry.plugins():
        if name in plugin.entry.split("."):
            return f"the name {name!r} is taken by {plugin.title}; choose another, or uninstall that"
    if find_spec(f"polyax_{name}") is not None:
        return f"the name {name!r} is taken: there is a module polyax_{name} already; choose another, or uninstall that"
    return None
