"""Finds the entry points of plugins and imports one of them at a time, guarded: a broken plugin is kept as a record.

Must not know what plugins do; the registry does.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from polyax.ir import blame
from polyax.ir.config import config
from polyax.runtime.contract.hooks import PROJECT, HookError
from polyax.runtime.contract.tracebacks import warn_user
from polyax.runtime.plugins.installed import entry_points

_MACHINERY = (__file__, os.path.dirname(importlib.__file__), "<frozen")

THIS_PROGRAM = "this program"
"""The distribution of plugins that were registered by a call instead of an entry point."""

_READY = "do so in Backend.opened, or later"

Status = Literal["not loaded", "loaded", "blocked", "failed"]


class Doing(threading.local):
    """What the thread that asks is doing with a plugin: several may call its hooks at the same time."""

    def __init__(self) -> None:
        self.actions: dict[str, str] = {}
        """Each action, and why it can't succeed, once that is known."""


@dataclass
class Plugin:
    """One entry point: where it comes from and what became of it."""

    entry: str
    """The entry point's name: the platform, and what else tells it from others (``cpu.fastdot``)."""
    value: str = ""
    """Where the plugin is: ``polyax_cpu.plugin``."""
    distribution: str = "unknown"
    version: str = ""
    load: Callable[[], Any] | None = None
    status: Status = "not loaded"
    seconds: float = 0.0
    cause: str = ""
    """Why it can't be used, in one line."""
    traceback: str = ""
    requires: str | None = None
    """The versions of the contract that it was written for; None, if it doesn't say."""
    hooks: Any = None
    """The hooks that it implements, once it is loaded; each is called with keywords and gives a list."""
    doing: Doing = field(default_factory=Doing)

    @property
    def platform(self) -> str:
        """The platform that it is for; ``any`` is for all."""
        return self.entry.partition(".")[0]

    @property
    def title(self) -> str:
        return f"plugin {self.entry!r} of {self.distribution} {self.version}".rstrip()

    @property
    def remedy(self) -> str:
        """What the user can do about a plugin that failed."""
        if self.distribution == THIS_PROGRAM:
            return "correct it where it is registered"
        name = self.distribution
        return f"update or uninstall {name}, or leave it out with POLYAX_DISABLE_PLUGINS={name}"

    def serves(self, platform: str) -> bool:
        return self.platform in (platform, "any")

    def fail(self, cause: str, detail: str = "") -> None:
        self.status, self.cause, self.traceback = "failed", cause, detail


def normalize(name: str) -> str:
    """Distribution names as package indices compare them."""
    return re.sub(r"[-_.]+", "-", name).lower()


def names(text: str | None) -> list[str]:
    """The words of a comma-separated setting."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def trace(message: str) -> None:
    """Prints a step of plugin loading if ``POLYAX_TRACE_PLUGINS`` asks for it."""
    if config.trace_plugins:
        print(f"polyax plugins: {message}", file=sys.stderr)


def scan() -> list[Plugin]:
    """The entry points of all installed plugins; none is imported."""
    began = time.perf_counter()
    found: dict[tuple[str, str], Plugin] = {}
    for point in entry_points(PROJECT):
        plugin = Plugin(point.name, point.value, point.distribution, point.version, point.load)
        found.setdefault((point.name, normalize(plugin.distribution)), plugin)  # the first on the path is imported
    trace(f"found {len(found)} entry points in {time.perf_counter() - began:.3f} s")
    return [_blocked(p) for p in sorted(found.values(), key=lambda p: p.entry)]


def _blocked(plugin: Plugin) -> Plugin:
    name = normalize(plugin.distribution)
    chosen, disabled = (set(map(normalize, names(text))) for text in (config.plugins, config.disable_plugins))
    if chosen and name not in chosen:
        plugin.status, plugin.cause = "blocked", f"POLYAX_PLUGINS={config.plugins} doesn't name {plugin.distribution}"
    elif name in disabled:
        plugin.status, plugin.cause = "blocked", f"POLYAX_DISABLE_PLUGINS={config.disable_plugins}"
    return plugin


def unknown_distributions(plugins: Iterable[Plugin]) -> list[str]:
    """Names in ``POLYAX_PLUGINS`` that no installed plugin has; leaving out what isn't there is no mistake."""
    known = {normalize(p.distribution) for p in plugins}
    return [n for n in names(config.plugins) if normalize(n) not in known]


def _said(error: BaseException) -> str:
    """The text of ``error`` behind a colon, if it has one; a stranger's may fail to give it."""
    try:
        text = str(error)
    except Exception as e:
        text = f"(its text can't be had: its __str__ raised {type(e).__name__})"
    return f": {text}" if text else ""


def _details(error: BaseException) -> str:
    """The traceback of ``error`` without the frames of loading and importing."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_MACHINERY)]
    head = ["Traceback (most recent call last):\n"] if frames else []
    return "".join([*head, *traceback.format_list(frames), *traceback.format_exception_only(error)])


def guarded(plugin: Plugin, action: str, work: Callable[[], Any]) -> Any:
    """The result of ``work``; if it fails, None, and the record of ``plugin`` says why. Its time is added up.

    Whatever a stranger's code raises, the other plugins go on: toolkits end the process, by ``SystemExit``, where a
    license or a driver is missing. Only the user's own interruption is passed on.
    """
    doing = plugin.doing.actions
    if action in doing:
        doing[action] = f"it computes or asks for devices while {action}, before it is ready: {_READY}"
        plugin.fail(doing[action])
        return None
    trace(f"{plugin.title}: {action}")
    began = time.perf_counter()
    doing[action] = ""
    try:
        return work()
    except KeyboardInterrupt:
        raise
    except HookError as e:  # its text says it all
        plugin.fail(str(e))
    except BaseException as e:
        if (other := blame.facts(e).get("plugin", plugin.title)) != plugin.title:
            warn_user(f"polyax: {plugin.title} couldn't go on {action}, for an error of {other}{_said(e)}")
            return None
        plugin.fail(f"{type(e).__name__} while {action}{_said(e)}", _details(e))
    finally:
        plugin.seconds += time.perf_counter() - began
        if cause := doing.pop(action):
            plugin.fail(cause)
    trace(f"{plugin.title} failed: {plugin.cause}")
    return None
