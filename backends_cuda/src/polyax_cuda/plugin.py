"""How polyax finds this backend. Its entry point in pyproject.toml names this module, so it imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from polyax.ir.primitive import Primitive
from polyax.runtime.backend import Backend, BackendSpec
from polyax.runtime.hooks import hookimpl


@hookimpl
def polyax_backends() -> Iterable[BackendSpec]:
    """NVIDIA GPUs: the default platform where there are some."""
    return [BackendSpec("cuda", probe=why_not, open=_open, priority=20)]


@hookimpl
def polyax_lowerings(backend: Backend) -> Mapping[Primitive, Any] | None:
    """Products, linear algebra, transforms, sorts and convolutions through NVIDIA's libraries."""
    if backend.name != "cuda":
        return None
    from polyax_cuda.library import LOWERINGS

    return LOWERINGS


def why_not() -> str | None:
    """None if there is a GPU that can be used, else the reason as users will read it."""
    from polyax_cuda.probe import why_not

    return why_not()


def _open() -> Backend:
    from polyax_cuda.backend import CudaBackend

    return CudaBackend()
