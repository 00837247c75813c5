"""Whether a loaded plugin keeps the rules of the hooks: names, arguments, results, and the version of the contract."""

from __future__ import annotations

import difflib
from typing import Any

import pluggy

from polyax.runtime.contract import hooks
from polyax.runtime.contract.backend import API_VERSION, BackendSpec
from polyax.runtime.contract.hooks import PROJECT, HookError
from polyax.runtime.plugins.loader import Plugin

HOOKS = tuple(name for name in vars(hooks) if name.startswith("polyax_"))


def hooks_of(plugin: Any) -> pluggy.HookRelay:
    """The hooks of ``plugin``, in a manager of its own: whatever it is or does, it can't disturb another plugin.

    Raises:
      HookError: a misspelt hook, a wrong argument, a forgotten marker, or no hook at all.
    """
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hooks)
    try:
        manager.register(plugin, name="it")
        manager.check_pending()
    except pluggy.PluginValidationError as e:
        raise HookError(_describe(e, manager, plugin)) from None
    if problem := _why_useless(manager, plugin):
        raise HookError(problem)
    return manager.hook


def _why_useless(manager: pluggy.PluginManager, plugin: Any) -> str | None:
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


def check_spec(spec: Any, plugin: Plugin) -> None:
    """Raises ``HookError`` unless a result of ``polyax_backends`` can be used."""
    if not isinstance(spec, BackendSpec):
        raise HookError(f"polyax_backends gave {spec!r}, not a BackendSpec")
    if spec.api != API_VERSION:
        raise HookError(
            f"backend {spec.name!r} was built for version {spec.api} of the backend contract, "
            f"this polyax has version {API_VERSION}; install versions that fit each other"
        )
    if plugin.platform not in ("any", spec.name):
        raise HookError(
            f"entry point {plugin.entry!r} brings backend {spec.name!r}; its name must begin with {spec.name!r}"
        )
