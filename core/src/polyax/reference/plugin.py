"""Registers the reference backend through the hooks that every other backend uses. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable

from polyax.runtime.contract.backend import Backend, BackendSpec
from polyax.runtime.contract.hooks import hookimpl


@hookimpl
def polyax_backends() -> Iterable[BackendSpec]:
    return [BackendSpec("reference", probe=lambda: None, open=_open, priority=-100)]


def _open() -> Backend:
    from polyax.reference.backend import ReferenceBackend  # needs all primitives

    return ReferenceBackend()
