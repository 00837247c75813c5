"""A word has one meaning: class names are unique. And no folder is too full to be read at a glance."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict

from support.sources import all_modules, tree

SEVERAL = {
    "Layout": "JAX's for the order of dimensions in memory; where the boxes of a drawing are, in polyax_inspect",
    "Primitive": "users make theirs from `polyax.extend`, whose rules are called as JAX calls them",
    "Ref": "JAX names references to arrays that change so; plans of the kernel compiler name values so",
}
"""Names of several classes, and why."""
FULLEST = 20
"""Modules that a folder may hold, `__init__` aside."""
FAMILIES = {"polyax", "polyax.numpy", "polyax.ops", "polyax.scipy.stats"}
"""Folders whose files are families of one list of names: whoever looks for one knows its file. The public modules of
polyax are named as JAX's are."""


def test_class_names_are_unique() -> None:
    owners: dict[str, list[str]] = defaultdict(list)
    for module in all_modules():
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                owners[node.name].append(module.name)
    twice = {name: where for name, where in owners.items() if len(where) > 1}
    assert twice.keys() == SEVERAL.keys(), {name: where for name, where in twice.items() if name not in SEVERAL}


def test_rooms_are_not_too_full() -> None:
    held = Counter(m.name.rpartition(".")[0] for m in all_modules() if not m.is_package)
    full = {room for room, count in held.items() if count > FULLEST}
    assert full == FAMILIES, {room: held[room] for room in full - FAMILIES}
