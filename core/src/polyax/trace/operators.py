"""Where arrays and tracers get their operators and methods. Which ones, and what they do, is decided by ``numpy``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyax.trace.tracer import Tracer

_TYPES: list[type] = [Tracer]
_MEMBERS: dict[str, Any] = {}


def register_array_type(cls: type) -> type:
    """``cls`` gets all operators: those installed already and those still to come."""
    _TYPES.append(cls)
    for name, member in _MEMBERS.items():
        _set(cls, name, member)
    return cls


def install_operators(methods: dict[str, Callable[..., Any]], properties: dict[str, Callable[[Any], Any]]) -> None:
    """Sets methods and read-only properties on every array type. Called once, by ``polyax.numpy``."""
    members: dict[str, Any] = {**methods, **{name: property(fget) for name, fget in properties.items()}}
    _MEMBERS.update(members)
    for cls in _TYPES:
        for name, member in members.items():
            _set(cls, name, member)


def _set(cls: type, name: str, member: Any) -> None:
    if name not in cls.__dict__:  # a type's own definition wins
        setattr(cls, name, member)
