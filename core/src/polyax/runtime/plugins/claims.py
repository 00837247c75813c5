"""What several plugins said about one backend, merged; claims that contradict each other are errors that name both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from polyax.ir import blame
from polyax.ir.errors import PluginError
from polyax.ir.primitive import Primitive
from polyax.runtime.contract.hooks import FusionPass, Lowering, Offer
from polyax.runtime.plugins.loader import Plugin

Answers = Iterable[tuple[Plugin, Any]]


def merge_lowerings(answers: Answers) -> Mapping[Primitive, tuple[Offer, ...]]:
    """All lowerings of each primitive, the highest ``priority`` first; PluginError if two have the same."""
    merged: dict[Primitive, list[tuple[Plugin, Lowering]]] = {}
    for plugin, table in answers:
        for primitive, lowering in table.items():
            merged.setdefault(primitive, []).append((plugin, lowering))
    return MappingProxyType({primitive: _ranked(primitive, claims) for primitive, claims in merged.items()})


def _ranked(primitive: Primitive, claims: list[tuple[Plugin, Lowering]]) -> tuple[Offer, ...]:
    ranked = sorted(claims, key=lambda claim: -claim[1].priority)
    for (one, high), (two, low) in pairwise(ranked):
        if high.priority == low.priority:
            raise _contradiction(
                f"two plugins bring a lowering of {primitive.name!r} with priority {low.priority}: {one.title} and "
                f"{two.title}; give one a higher priority, or leave one out with POLYAX_DISABLE_PLUGINS"
            )
    return tuple([Offer(plugin.title, lowering) for plugin, lowering in ranked])


def _contradiction(text: str) -> PluginError:
    """The error is nobody else's: its text names both."""
    error = PluginError(text)
    blame.about(error, told=True)
    return error


def merge_fusers(answers: Answers) -> Mapping[str, tuple[Plugin, FusionPass]]:
    """Fusers by name, and whose they are; PluginError if two plugins use one name."""
    merged: dict[str, tuple[Plugin, FusionPass]] = {}
    for plugin, fusers in answers:
        for fuser in fusers:
            if fuser.name in merged:
                titles = f"{merged[fuser.name][0].title} and {plugin.title}"
                raise _contradiction(f"two plugins bring a fuser named {fuser.name!r}: {titles}")
            merged[fuser.name] = plugin, fuser
    return MappingProxyType(merged)
