"""The public names against a snapshot: none comes or goes unnoticed. ``make snapshot`` accepts the present ones."""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterator
from pathlib import Path

SNAPSHOT = Path(__file__).with_name("public_names.txt")
MODULES = (
    "polyax",
    "polyax.errors",
    "polyax.lax",
    "polyax.nn",
    "polyax.nn.initializers",
    "polyax.numpy",
    "polyax.numpy.linalg",
    "polyax.numpy.fft",
    "polyax.random",
    "polyax.scipy.special",
    "polyax.tree",
    "polyax.tree_util",
)


def public(name: str) -> Iterator[str]:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError:
        return
    for attribute in sorted(vars(module)):
        value = getattr(module, attribute)
        foreign = isinstance(value, types.ModuleType) and not value.__name__.startswith("polyax")
        if not attribute.startswith("_") and not foreign and attribute != "annotations":
            yield f"{name}.{attribute}"


def present() -> list[str]:
    return [line for name in MODULES for line in public(name)]


def test_public_names_are_those_of_the_snapshot() -> None:
    recorded, found = set(SNAPSHOT.read_text().split()), set(present())
    gone, new = sorted(recorded - found), sorted(found - recorded)
    assert not gone and not new, f"gone: {gone}; new: {new}; `make snapshot` accepts this"


if __name__ == "__main__":
    SNAPSHOT.write_text("\n".join(present()) + "\n")
