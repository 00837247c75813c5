"""How polyax finds this backend. Its entry point in pyproject.toml names this module, so it imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from polyax.backend import Backend, BackendSpec, Lowering, Primitive, hookimpl

polyax_requires = ">=1,<2"


@hookimpl
def polyax_backends() -> Iterable[BackendSpec]:
    """Every device of every OpenCL platform on this machine."""
    return [BackendSpec("opencl", probe=why_not, open=_open, priority=_priority)]


@hookimpl
def polyax_lowerings(backend: Backend) -> Mapping[Primitive, Lowering] | None:
    """Matrix products through CLBlast, where it is installed."""
    if backend.name != "opencl":
        return None
    from polyax_opencl.library import LOWERINGS

    return LOWERINGS


def why_not() -> str | None:
    """None if there is a device, else the reason as users will read it."""
    try:
        from polyax_opencl.probe import find
    except (ImportError, OSError) as e:
        return f'PyOpenCL can\'t be imported ({e}); pip install "polyax[opencl]"'
    return find().why_none


def _priority() -> int:
    """A GPU comes before the processor, the processor's own backend before OpenCL on it."""
    from polyax_opencl.probe import find, on_processor

    return -10 if all(map(on_processor, find().devices)) else 10


def _open() -> Backend:
    from polyax_opencl.backend import OpenCLBackend

    return OpenCLBackend()
