"""Names of packages that are loaded when they are first asked for, so that ``import polyax`` stays quick."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

NOTHING: Mapping[str, str] = MappingProxyType({})


def load(
    package: str,
    homes: Mapping[str, str],
    name: str,
    removed: Mapping[str, str] = NOTHING,
    guarded: Callable[[Any, str, str], Any] = lambda value, *_: value,
) -> Any:
    """The name ``name`` of ``package``, from the module that ``homes`` says; a submodule is its own home.

    ``guarded(value, package, name)`` is what users get of a value of a module.

    Raises:
      AttributeError: the package has no such name; ``removed`` says of names that JAX had what to use instead.
    """
    home = homes.get(name)
    if home is None and name in removed:
        raise AttributeError(f"{package}.{name} is deprecated; {removed[name]}")
    if home is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}{_reason(package, name)}")
    module = importlib.import_module(home)
    value = module if home == f"{package}.{name}" else guarded(getattr(module, name), package, name)
    setattr(sys.modules[package], name, value)  # asked for once
    return value


def _reason(package: str, name: str) -> str:
    """Why JAX has the name and this package hasn't, if that is known."""
    from polyax.gaps import GAPS

    reason = GAPS.get(f"{package}.{name}".removeprefix("polyax."))
    return f": JAX has it, polyax doesn't, because {reason}. docs/gaps.md lists such names." if reason else ""


def submodules(package: str, *names: str) -> dict[str, str]:
    """The homes of submodules."""
    return {name: f"{package}.{name}" for name in names}


def names_of(home: str, *names: str) -> dict[str, str]:
    """The homes of names that one module defines."""
    return dict.fromkeys(names, home)
