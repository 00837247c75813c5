"""The page that ``python -m polyax info`` prints: platforms, devices, plugins, versions, caches, settings in force."""

from __future__ import annotations

import os
import platform as host
import sys
import textwrap
import warnings
from collections.abc import Iterable, Sequence

import ml_dtypes
import numpy as np
import pluggy

from polyax.ir.config import FLAGS, Flag, config
from polyax.runtime.contract.cache import CACHES, cache_root, why_no_cache
from polyax.runtime.contract.text import columns
from polyax.runtime.plugins import advice, platforms
from polyax.runtime.plugins.loader import Plugin
from polyax.runtime.plugins.registry import registry

SLOW = 1.0
"""Seconds of loading from which on a plugin is called slow."""


def report() -> str:
    """The whole page. Imports the plugins that the settings ask for, and no others; never raises for what it shows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the page says all that they would
        for name in platforms.requested() or [None]:
            registry.load(name)
        sections = {
            "Platforms": _platforms(),
            "Devices": _devices(),
            "Plugins": _plugins(),
            "Versions": _versions(),
            "Cache": _cache(),
            "Settings": _settings(),
        }
    return "\n\n".join(f"{title}\n{body}" for title, body in sections.items())


def table(rows: Iterable[Sequence[str]]) -> str:
    """Rows as aligned columns, indented by two, and as long as they are.

    >>> print(table([("cpu", "2 devices"), ("which are virtual",), ("opencl", "none")]))
      cpu     2 devices
              which are virtual
      opencl  none
    """
    return textwrap.indent("\n".join(columns(list(rows), sys.maxsize)), "  ")


def _platforms() -> str:
    asked = platforms.requested()
    names = [*asked, *(n for n in registry.known_names() if n not in asked)]
    default = _default_name()
    return table(row for name in names for row in _platform_rows(name, name in asked or not asked, name == default))


def _default_name() -> str | None:
    try:
        return platforms.default_backend().name
    except RuntimeError:
        return None  # the rows of the platforms say why


def _platform_rows(name: str, allowed: bool, default: bool) -> list[Sequence[str]]:
    if not allowed and name != platforms.REFERENCE:
        return [(name, f"left out by POLYAX_PLATFORMS={config.platforms}")]
    reason = registry.why_unusable(name)
    note = [(f"note: {text}",)] if (text := registry.note(name)) else []
    if reason is None:
        return [(name, f"usable, the default ({platforms.why_default()})" if default else "usable"), *note]
    remedy = [] if registry.is_known(name) else [(f"remedy: {advice.install_hint(name)}",)]
    return [(name, "not usable"), *((f"cause: {line}",) for line in reason.splitlines()), *remedy, *note]


def _devices() -> str:
    names = platforms.requested() or registry.names()
    found = [d for name in names if registry.why_unusable(name) is None for d in registry.backend(name).devices()]
    return table((str(d), d.device_kind, repr(d)) for d in found) or "  none"


def _plugins() -> str:
    return table(row for plugin in registry.plugins() for row in _plugin_rows(plugin))


def _plugin_rows(plugin: Plugin) -> list[Sequence[str]]:
    slow = ", slow" if plugin.seconds > SLOW else ""
    time = f"{plugin.seconds:.3f} s{slow}" if plugin.status in ("loaded", "failed") else ""
    rows: list[Sequence[str]] = [(plugin.entry, f"{plugin.distribution} {plugin.version}", plugin.status, time)]
    if plugin.cause:
        rows.append((f"cause: {plugin.cause}",))
    if plugin.status == "failed":
        rows += [(f"remedy: {plugin.remedy}",), *((f"  {line}",) for line in plugin.traceback.splitlines())]
    return rows


def _versions() -> str:
    from importlib import metadata  # slow, and needed by nobody else

    try:
        own = metadata.version("polyax")
    except metadata.PackageNotFoundError:
        own = "not installed: run from a folder"
    return table(
        [
            ("polyax", own),
            ("python", f"{host.python_version()} on {host.platform()}"),
            ("numpy", np.__version__),
            ("ml_dtypes", ml_dtypes.__version__),
            ("pluggy", pluggy.__version__),
        ]
    )


def _cache() -> str:
    root = cache_root()
    state = "off (POLYAX_COMPILATION_CACHE=0)" if not config.compilation_cache else why_no_cache(root) or "in use"
    counts = [(kind, f"{c.stats().hits} hits, {c.stats().misses} misses in this process") for kind, c in CACHES.items()]
    return table([(str(root), state), *counts])


def _settings() -> str:
    return table(map(_setting, FLAGS.values()))


def _setting(flag: Flag) -> Sequence[str]:
    try:
        value = getattr(config, flag.name)
    except ValueError as e:  # of a plugin's flag, which nobody has read so far
        return flag.name, "unreadable", str(e), flag.doc
    return flag.name, str(value), _source(flag, value), flag.doc


def _source(flag: Flag, value: object) -> str:
    """Where a value comes from; an update that says the same as the environment can't be told from it."""
    text = os.environ.get(flag.env)
    if text is not None and flag.parse(text) == value:
        return f"{flag.env}"
    return "default" if value == flag.default else "set by the program"
