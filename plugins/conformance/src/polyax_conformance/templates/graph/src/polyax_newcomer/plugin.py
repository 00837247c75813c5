"""How polyax finds this backend. Its entry point in pyproject.toml names this module, so it imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable

from polyax.backend import Backend, BackendSpec, hookimpl

polyax_requires = ">=1,<2"


@hookimpl
def polyax_backends() -> Iterable[BackendSpec]:
    """One platform. With this priority it is used when somebody asks for it by name; cpu's is 0, that of GPUs 20."""
    return [BackendSpec("newcomer", probe=why_not, open=make_backend, priority=-50)]


def why_not() -> str | None:
    """None if this backend can work here, else the reason and its remedy, as users will read them."""
    return None


def make_backend() -> Backend:
    """Called when the platform is first used: the engine is loaded here."""
    from polyax_newcomer.backend import NewcomerBackend

    return NewcomerBackend()
