"""The entry points of installed distributions, read from the files that installers leave.

``importlib.metadata`` knows more kinds of installations, and is asked about what is no folder; to import it and to have
it look through all distributions takes 25 ms of each process.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from typing import Any, NamedTuple

INFORMATION = (".dist-info", ".egg-info")


class EntryPoint(NamedTuple):
    """What a distribution says of a module: ``value`` is ``package.module`` or ``package.module:attribute``."""

    name: str
    value: str
    distribution: str
    version: str

    def load(self) -> Any:
        """Imports it."""
        module, _, attributes = self.value.partition("[")[0].strip().partition(":")
        names = filter(None, attributes.strip().split("."))
        return functools.reduce(getattr, names, importlib.import_module(module.strip()))


def entry_points(group: str) -> Iterator[EntryPoint]:
    """Those of a group, in the order of the path."""
    if any(hasattr(f, "find_distributions") and f is not PathFinder for f in sys.meta_path):
        yield from _by_metadata(group, sys.path)
        return
    for path in sys.path:
        if path.endswith(".egg") or os.path.isfile(path):
            yield from _by_metadata(group, [path])
        else:
            yield from _in_folder(group, path or ".")


def _by_metadata(group: str, path: list[str]) -> Iterator[EntryPoint]:
    from importlib import metadata

    for distribution in metadata.distributions(path=path):
        for point in distribution.entry_points.select(group=group):
            yield EntryPoint(point.name, point.value, distribution.name, distribution.version)


def _in_folder(group: str, folder: str) -> Iterator[EntryPoint]:
    try:
        with os.scandir(folder) as entries:
            found = [entry.path for entry in entries if entry.name.lower().endswith(INFORMATION)]
    except OSError:  # the path may name what isn't there
        return
    for information in found:
        text = _text(information, "entry_points.txt")
        if f"[{group}]" in text:
            headers = _headers(_text(information, "METADATA") or _text(information, "PKG-INFO"))
            for name, value in _section(text, group):
                yield EntryPoint(name, value, headers.get("name", "unknown"), headers.get("version", ""))


def _text(folder: str, name: str) -> str:
    """Of a file; nothing, if there is none."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def _headers(text: str) -> dict[str, str]:
    """The lines before the first empty one."""
    lines = text.partition("\n\n")[0].splitlines()
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _section(text: str, group: str) -> Iterator[tuple[str, str]]:
    """Names and values behind ``[group]``."""
    section = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif section == group and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()
