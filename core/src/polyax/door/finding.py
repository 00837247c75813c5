"""Finders: ``jax`` and all in it are polyax's modules, whether or not JAX is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import DistributionFinder
from types import ModuleType

from polyax.door.aliases import extended, module_of
from polyax.door.distributions import NAMES, StandIn
from polyax.door.missing import note
from polyax.door.places import PLACES

_ANY = DistributionFinder.Context()


class AliasFinder(MetaPathFinder):
    """Goes first. Answers ``jax.…``, and lets modules of polyax that are loaded late be extended."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        head, _, rest = fullname.partition(".")
        if head == "jax" or fullname in PLACES:
            module = module_of(fullname)
            if module is None:
                raise ModuleNotFoundError(f"No module named {fullname!r}: {note(fullname)}", name=fullname)
            return ModuleSpec(fullname, SameModule(module), is_package=hasattr(module, "__path__"))
        if head == "polyax" and f"jax.{rest}" in PLACES:
            return _extended(PathFinder.find_spec(fullname, path, target), f"jax.{rest}")
        return None


class SameModule(Loader):
    """Gives a module that exists, and leaves it as it was."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        if self._spec is not None:  # importlib has put the alias there
            module.__spec__ = self._spec


class ExtendingLoader(Loader):
    """Loads a module of polyax, and extends it."""

    def __init__(self, loader: Loader, alias: str) -> None:
        self._loader = loader
        self._alias = alias

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        extended(module, self._alias)


def _extended(spec: ModuleSpec | None, alias: str) -> ModuleSpec | None:
    if spec is not None and spec.loader is not None:
        spec.loader = ExtendingLoader(spec.loader, alias)
    return spec


class LastFinder(MetaPathFinder):
    """Goes last. Says of ``from jax import foo`` what isn't there: Python looks for a module ``polyax.foo`` then."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        holder, _, name = fullname.rpartition(".")
        alias = "jax" + holder.removeprefix("polyax")
        if holder.startswith("polyax") and alias in sys.modules and not name.startswith("__"):
            raise ModuleNotFoundError(note(f"{alias}.{name}"), name=f"{alias}.{name}")
        return None

    def find_distributions(self, context: DistributionFinder.Context = _ANY) -> Iterable[StandIn]:
        """JAX's distributions, where none are installed, to those who ask for them by name."""
        return [StandIn(context.name)] if context.name in NAMES else []
