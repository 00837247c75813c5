"""How polyax finds this backend. Its entry point in pyproject.toml names this module, so it imports nothing heavy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable

from polyax.backend import Backend, BackendSpec, hookimpl
from polyax_kernels.api import settings  # noqa: F401  # declares them

polyax_requires = ">=1,<2"


@hookimpl
def polyax_backends() -> Iterable[BackendSpec]:
    """One platform. Its priority is below the real CPU backend's: it runs when it is asked for by name."""
    return [BackendSpec("hello_c", probe=why_not, open=make_backend, priority=-50)]


def why_not() -> str | None:
    """None if this backend can work here, else the reason as users will read it."""
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        return f"there is no C compiler {compiler!r}: install gcc or clang, or name one in the environment variable CC"
    return None


def make_backend() -> Backend:
    from polyax_hello_c.backend import HelloCBackend  # the kernel compiler is loaded when it is needed

    return HelloCBackend("hello_c")
