"""Whether a loaded plugin keeps the rules of the hooks: names, arguments, results, and the version of the contract."""

from __future__ import annotations

import difflib
from typing import Any

import pluggy

from polyax.runtime import hooks
from polyax.runtime.backend import API_VERSION, BackendSpec
from polyax.runtime.hooks import PROJECT
from polyax.runtime.loader import Plugin

HOOKS = tuple(name for name in vars(hooks) if name.startswith("polyax_"))


def new_manager() -> pluggy.PluginManager:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hooks)
    return manager


def why_not_plugin(plugin: Any) -> str | None:
    """Why ``plugin`` can't be registered: a misspelt hook, a wrong argument, a forgotten marker, no hook at all."""
    manager = new_manager()
    try:
        manager.register(plugin, name="it")
        manager.check_pending()
    except pluggy.PluginValidationError as e:
        return _describe(e, manager, plugin)
    unmarked = [n for n in HOOKS if callable(getattr(plugin, n, None)) and n not in _implemented(manager, plugin)]
    if unmarked:
        return f"{', '.join(unmarked)} lacks the mark @polyax.hookimpl"
    if not _implemented(manager, plugin):
        return f"it implements none of the hooks {', '.join(HOOKS)}"
    return None


def _implemented(manager: pluggy.PluginManager, plugin: Any) -> list[str]:
    return [caller.name for caller in manager.get_hookcallers(plugin) or ()]


def _describe(error: pluggy.PluginValidationError, manager: pluggy.PluginManager, plugin: Any) -> str:
    unknown = [c.name for c in manager.get_hookcallers(plugin) or () if not c.has_spec()]
    if not unknown:
        return " ".join(str(error).split())
    return "; ".join(map(_unknown_hook, unknown))


def _unknown_hook(name: str) -> str:
    close = difflib.get_close_matches(name, HOOKS, n=1, cutoff=0.5)
    suggestion = f"did you mean {close[0]!r}?" if close else f"the hooks are {', '.join(HOOKS)}"
    return f"unknown hook {name!r}; {suggestion}"


def why_not_spec(spec: Any, plugin: Plugin) -> str | None:
    """Why a result of ``polyax_backends`` can't be used."""
    if not isinstance(spec, BackendSpec):
        return f"polyax_backends gave {spec!r}, not a BackendSpec"
    if spec.api != API_VERSION:
        return (
            f"backend {spec.name!r} was built for version {spec.api} of the backend contract, "
            f"this polyax has version {API_VERSION}; install versions that fit each other"
        )
    if plugin.platform not in ("any", spec.name):
        return f"entry point {plugin.entry!r} brings backend {spec.name!r}; its name must begin with {spec.name!r}"
    return None
