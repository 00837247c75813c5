"""Names of JAX that were asked for and aren't there: how that is told, and which they were."""

from __future__ import annotations

from polyax.door.version import __version__
from polyax.gaps import GAPS

_asked: dict[str, None] = {}


def missing() -> tuple[str, ...]:
    """The names of JAX that were asked for in this process and aren't there, in the order of their first use.

    Some of them libraries only try, and do without.

    >>> missing()
    ()
    """
    return tuple(_asked)


def note(name: str) -> str:
    """Notes that ``name``, such as ``jax.lax.foo``, isn't there; what is to be said of it.

    >>> print(_told("jax._src.foo"))
    polyax has no 'jax._src.foo' (a private name of JAX). It follows JAX 0.10.2; what of it is missing stands in \
docs/libraries.md
    """
    _asked[name] = None
    return _told(name)


def _told(name: str) -> str:
    if reason := GAPS.get(name.removeprefix("jax.")):
        return f"polyax has no {name!r}, because {reason}. docs/gaps.md and docs/libraries.md list what is missing"
    private = any(part.startswith("_") for part in name.split("."))
    kind = "a private name of JAX" if private else "a name of JAX's interface, if JAX has it"
    return (
        f"polyax has no {name!r} ({kind}). It follows JAX {__version__}; what of it is missing stands in "
        "docs/libraries.md"
    )
