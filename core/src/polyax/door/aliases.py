"""Modules under JAX's names: polyax's own objects, asked for what else their places hold when they lack a name."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

from polyax.door.missing import note
from polyax.door.places import PLACES

_ABSENT = object()


def own_name(alias: str) -> str:
    """``polyax.numpy`` for ``jax.numpy``."""
    return "polyax" + alias.removeprefix("jax")


def is_own(alias: str) -> bool:
    """Whether polyax itself has a module in that place."""
    name = own_name(alias)
    if not alias.startswith("jax.") or name in sys.modules:
        return name in sys.modules
    path = getattr(sys.modules.get(name.rpartition(".")[0]), "__path__", None)
    return path is not None and PathFinder.find_spec(name, path) is not None


def module_of(alias: str) -> ModuleType | None:
    """The module that ``alias`` means: polyax's own, the one place that the table gives, or one made of several."""
    if is_own(alias):
        return extended(importlib.import_module(own_name(alias)), alias)
    places = PLACES.get(alias)
    if places is None:
        return None
    is_package = any(name.startswith(f"{alias}.") for name in PLACES)
    if len(places) == 1 and not is_package:
        module = importlib.import_module(places[0])
        return extended(module, alias) if module.__name__.startswith("polyax.door.") else module
    made = ModuleType(alias, f"What polyax has in the place of {alias}.")
    if is_package:
        made.__path__ = []
    return extended(made, alias)


def extended(module: ModuleType, alias: str) -> ModuleType:
    """``module``, which finds what the places of ``alias`` hold after its own names; what isn't there is told well."""
    before = vars(module).get("__getattr__")
    if hasattr(before, "own"):  # done before
        return module

    def lookup(name: str) -> Any:
        found = _look_up(module, alias, name)
        if found is _ABSENT:
            raise AttributeError(_told(before, alias, name))
        return found

    lookup.own = before  # type: ignore[attr-defined]
    vars(module)["__getattr__"] = lookup
    return module


def _told(before: Any, alias: str, name: str) -> str:
    """What is said of a name that isn't there; of one that JAX has removed too, what its module says."""
    text = f"module {alias!r} has no attribute {name!r}"
    if name.startswith("__") or is_own(f"{alias}.{name}"):  # a module that is about to be imported
        return text
    told = note(f"{alias}.{name}")
    try:
        if before is not None:
            before(name)
    except AttributeError as e:
        if "deprecated" in str(e):
            return str(e)
    return f"{text}: {told}"


def _look_up(module: ModuleType, alias: str, name: str) -> Any:
    if (found := _own(module, name)) is not _ABSENT:
        return found
    for place in PLACES.get(alias, ()):
        home = importlib.import_module(place)
        if home is not module and (found := _own(home, name)) is not _ABSENT:
            setattr(module, name, found)
            return found
    inside = f"{alias}.{name}"
    return importlib.import_module(inside) if inside in PLACES else _ABSENT


def _own(module: ModuleType, name: str) -> Any:
    """A name that the module has without the door."""
    if name in vars(module):
        return vars(module)[name]
    late = vars(module).get("__getattr__")
    late = getattr(late, "own", late)
    if late is None:
        return _ABSENT
    try:
        return late(name)
    except AttributeError:
        return _ABSENT
