"""Which platforms are used, in which order, and which is the default: settings first, then priorities."""

from __future__ import annotations

from polyax.ir.config import config
from polyax.ir.forks import UncutLock
from polyax.runtime.contract.backend import Backend
from polyax.runtime.plugins import advice
from polyax.runtime.plugins.loader import names
from polyax.runtime.plugins.registry import registry

_lock = UncutLock()
_default: list[Backend] = []
REFERENCE = "reference"


def requested() -> list[str]:
    """The platforms that ``POLYAX_PLATFORMS`` names, in order; empty: all."""
    return names(config.platforms)


def backend(name: str) -> Backend:
    """The backend named ``name``; opened if need be. The reference backend can always be had.

    Raises:
      RuntimeError: it can't be used, or ``POLYAX_PLATFORMS`` leaves it out.
    """
    if requested() and name not in requested() and name != REFERENCE:
        raise RuntimeError(advice.left_out(name, str(config.platforms)))
    return registry.backend(name)


def default_backend() -> Backend:
    """The first platform named by ``POLYAX_PLATFORMS``, else the usable one with the highest priority.

    Raises:
      RuntimeError: a platform that was named can't be used.
    """
    with _lock:
        if not _default:
            _default.append(_first_requested() if requested() else _best_usable())
        return _default[0]


def why_default() -> str:
    """Why the default platform is the default, in a few words."""
    if requested():
        return "POLYAX_PLATFORMS names it first" if len(requested()) > 1 else "POLYAX_PLATFORMS names it"
    usable = [name for name in registry.names() if registry.why_unusable(name) is None]
    return "the highest priority: " + ", ".join(f"{name} {registry.priority(name)}" for name in usable)


def _first_requested() -> Backend:
    for name in requested():
        if registry.why_unusable(name) is not None:
            registry.backend(name)  # raises, with all that is known
    return registry.backend(requested()[0])


def _best_usable() -> Backend:
    registry.load()
    reasons = {p.platform: p.cause for p in registry.plugins() if p.status == "failed" and p.platform != "any"}
    for name in registry.names():
        if name == REFERENCE:
            advice.warn_reference(reasons)
        elif (reason := registry.why_unusable(name)) is not None:
            reasons[name] = reason
            continue
        try:
            return registry.backend(name)
        except RuntimeError as e:  # it is there and can't be opened: the next one, as nobody asked for it by name
            reasons[name] = str(e)
            if name == REFERENCE:
                raise
    raise AssertionError("the reference backend is built in")


def _forget(flag: str) -> None:
    if flag in ("platforms", "plugins", "disable_plugins"):
        _default.clear()
    if flag == "num_cpu_devices" and registry.opened():
        raise RuntimeError(
            "jax_num_cpu_devices config should be updated before backends are initialized i.e. before any JAX "
            "operation is executed. You should initialize this config immediately after `import jax`."
        )


config.on_update(_forget)
