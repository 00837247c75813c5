"""What several plugins said about one backend, merged; claims that contradict each other are errors that name both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from polyax.ir.errors import PluginError
from polyax.ir.primitive import Primitive
from polyax.runtime.contract.hooks import Fuser, Lowering
from polyax.runtime.plugins.loader import Plugin

Answers = Iterable[tuple[Plugin, Any]]


def merge_lowerings(answers: Answers) -> Mapping[Primitive, Lowering]:
    """Of two lowerings of a primitive the one with the higher ``priority``; PluginError if they are equal."""
    merged: dict[Primitive, tuple[Plugin, Lowering]] = {}
    for plugin, table in answers:
        for primitive, lowering in table.items():
            claim = plugin, lowering
            merged[primitive] = _stronger(primitive, merged[primitive], claim) if primitive in merged else claim
    return MappingProxyType({primitive: lowering for primitive, (_, lowering) in merged.items()})


def _stronger(
    primitive: Primitive, one: tuple[Plugin, Lowering], two: tuple[Plugin, Lowering]
) -> tuple[Plugin, Lowering]:
    ranks = [getattr(lowering, "priority", 0) for _, lowering in (one, two)]
    if ranks[0] == ranks[1]:
        raise PluginError(
            f"two plugins bring a lowering of {primitive.name!r} with priority {ranks[0]}: {one[0].title} and "
            f"{two[0].title}; give one a higher priority, or leave one out with POLYAX_DISABLE_PLUGINS"
        )
    return one if ranks[0] > ranks[1] else two


def merge_fusers(answers: Answers) -> Mapping[str, Fuser]:
    """Fusers by name; PluginError if two plugins use one name."""
    merged: dict[str, tuple[Plugin, Fuser]] = {}
    for plugin, fusers in answers:
        for fuser in fusers:
            if fuser.name in merged:
                titles = f"{merged[fuser.name][0].title} and {plugin.title}"
                raise PluginError(f"two plugins bring a fuser named {fuser.name!r}: {titles}")
            merged[fuser.name] = plugin, fuser
    return MappingProxyType({name: fuser for name, (_, fuser) in merged.items()})
