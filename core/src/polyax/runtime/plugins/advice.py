"""Texts about platforms and plugins that can't be used: the cause, and what the user can do about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from polyax.runtime.contract.tracebacks import warn_user
from polyax.runtime.plugins.loader import Plugin

EXTRAS = ("cpu", "cuda", "opencl", "inspect", "mpi", "wasm")
"""The extras of the core distribution, named as what they bring."""
INSPECTION = "any.inspect"
"""The entry point of the plugin that draws and writes compiled programs."""


def install_hint(platform: str) -> str:
    package = f'"polyax[{platform}]"' if platform in EXTRAS else "polyax-" + platform.replace("_", "-")
    return f"pip install {package}"


def close(name: str, known: Iterable[str]) -> str | None:
    """Which of the names that are known is close to one that isn't."""
    import difflib  # when it is needed: `import polyax` stays quick

    return next(iter(difflib.get_close_matches(name, known, n=1)), None)


def unknown_backend(name: str, known: Sequence[str], reason: str) -> str:
    """JAX's text, why, and what to do."""
    meant = close(name, known)
    hint = f"Did you mean {meant!r}?" if meant else f"If it is to be had, `{install_hint(name)}` brings it."
    return f"Unknown backend {name}. Available backends are {list(known)}: {reason}. {hint}"


def cannot_use(name: str, reason: str, details: str = "") -> str:
    text = f"Unable to initialize backend {name!r}: {reason}. `python -m polyax info` shows every platform and plugin."
    return f"{text}\n\nThe plugin failed with:\n{details}" if details else text


def conflict(name: str, plugins: Sequence[Plugin]) -> str:
    titles = " and ".join(p.title for p in plugins)
    return (
        f"two plugins bring a backend named {name!r}: {titles}; "
        f"uninstall one, or leave it out with POLYAX_DISABLE_PLUGINS={plugins[-1].distribution}"
    )


def left_out(name: str, platforms: str) -> str:
    return (
        f"Unknown backend {name}. Available backends are {platforms.split(',')}: POLYAX_PLATFORMS={platforms} "
        f"leaves {name!r} out; add it there, or unset that variable."
    )


def unknown_fuser(name: str, setting: str, known: Mapping[str, str]) -> str:
    """``known``: the names of fusers, and the titles of their plugins."""
    meant = close(name, known)
    there = ", ".join(f"{fuser} ({title})" for fuser, title in known.items()) or "none; `pip install polyax-fusion`"
    hint = f" Did you mean {meant!r}?" if meant else ""
    return f"POLYAX_FUSERS (config.fusers) is {setting!r}, and no plugin brings {name!r}. There are: {there}.{hint}"


@cache
def warn_unfused(missing: Sequence[str]) -> None:
    """Says once why programs run slowly, and how to get what they lack."""
    warn_user(
        f"polyax: programs run slowly, as no plugin brings the fusers {', '.join(missing)}. "
        "`pip install polyax-fusion` brings them; POLYAX_FUSERS= with no name says that none are meant. "
        "`python -m polyax info` tells more."
    )


def no_inspection(what: str, reason: str | None) -> str:
    """What can't be done, why, and the remedy."""
    cause = f" ({reason})" if reason else ""
    return f"{what}{cause}. `pip install polyax-inspect` (or `polyax[inspect]`) brings what is needed."


def warn_failed(plugin: Plugin) -> None:
    warn_user(
        f"polyax: {plugin.title} can't be used: {plugin.cause}. To be rid of this warning, {plugin.remedy}. "
        "`python -m polyax info` tells more."
    )


def warn_reference(reasons: Mapping[str, str | None]) -> None:
    """Says once why programs run slowly, and how to get the compiled backend."""
    tried = "".join(f" ({name}: {reason})" for name, reason in reasons.items() if reason)
    warn_user(
        f"polyax runs on its reference backend (NumPy, not compiled): no compiled backend is usable{tried}. "
        f"`{install_hint('cpu')}` brings one; POLYAX_PLATFORMS=reference says that this one is meant."
    )
