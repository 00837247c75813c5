"""How polyax finds this backend. Its entry point in pyproject.toml names this module, so it imports nothing heavy."""

from __future__ import annotations

import shutil
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
    """Products: by the host, as long as no library of the vendor's is called here. The kernels that polyax has for them
    are written in OpenCL C's vectors."""
    if backend.name != "newcomer":
        return None
    from polyax.lax import conv_general_dilated_p, dot_general_p
    from polyax_kernels.api.gpu import through_host
    from polyax_kernels.api.lowerings import on_host

    return {primitive: through_host(on_host(primitive)) for primitive in (dot_general_p, conv_general_dilated_p)}


def why_not() -> str | None:
    """None if this backend can work here, else the reason and its remedy, as users will read them."""
    return None if shutil.which("cc") else "there is no C compiler 'cc': install gcc or clang"


def make_backend() -> Backend:
    """Called when the platform is first used: the toolkit is loaded here."""
    from polyax_newcomer.backend import NewcomerBackend

    return NewcomerBackend()
