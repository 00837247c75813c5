"""How polyax finds this backend. Its entry point in pyproject.toml names this module, so it imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from polyax.backend import Backend, BackendSpec, hookimpl
from polyax_kernels.api import settings  # noqa: F401  # declares them

polyax_requires = ">=1,<2"


@hookimpl
def polyax_backends() -> Iterable[BackendSpec]:
    """One platform. With this priority it is used when somebody asks for it by name; cpu's is 0, that of GPUs 20."""
    return [BackendSpec("newcomer", probe=why_not, open=make_backend, priority=-50)]


@hookimpl
def polyax_lowerings(backend: Backend) -> Mapping[Any, Any] | None:
    """Primitives that a library does better than loops: matrix products, here through NumPy."""
    if backend.name != "newcomer":
        return None
    from polyax.lax import dot_general_p
    from polyax_kernels.api.lowerings import on_host

    return {dot_general_p: on_host(dot_general_p)}


def why_not() -> str | None:
    """None if this backend can work here, else the reason and its remedy, as users will read them."""
    return None


def make_backend() -> Backend:
    """Called when the platform is first used: the kernel compiler is loaded here."""
    from polyax_newcomer.backend import NewcomerBackend

    return NewcomerBackend("newcomer")
