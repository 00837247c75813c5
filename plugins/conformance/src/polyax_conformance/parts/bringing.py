"""Brings hooks to a platform for as long as a block runs, as an installed plugin would."""

from __future__ import annotations

import types
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import polyax
from polyax.backend import hookimpl, registry


@contextmanager
def brought(platform: str, owner: str, hook: Callable[[Any], Any]) -> Generator[None]:
    """``hook``, named as one of the hooks that are asked for a backend, answers for ``platform``; others get None."""

    def answer(backend: Any) -> Any:
        return hook(backend) if backend.name == platform else None

    plugin = types.SimpleNamespace(polyax_requires=">=1,<2")
    setattr(plugin, hook.__name__, hookimpl(answer))
    record = registry.register(plugin, f"{platform}.{owner}")
    try:
        yield
    finally:
        registry.unregister(record)
        polyax.clear_caches()  # what was compiled with it
