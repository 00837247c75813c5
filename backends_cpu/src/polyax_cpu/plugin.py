"""The hooks of this distribution. Imports no toolkit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from polyax.ir.primitive import Primitive
from polyax.runtime.contract.backend import Backend, BackendSpec
from polyax.runtime.contract.hooks import Lowering, hookimpl


def _probe() -> str | None:
    try:
        import llvmlite.binding  # noqa: F401
    except (ImportError, OSError) as e:
        return f"llvmlite can't be imported ({e}); pip install --upgrade llvmlite"
    return None


def _open() -> Backend:
    from polyax_cpu import pool

    pool.prepare()
    import polyax_cpu.lowerings  # noqa: F401  # every program asks for them; LLVM makes the runtime meanwhile
    from polyax_cpu.backend import CpuBackend
    from polyax_cpu.libraries import openblas

    openblas.read_ahead()

    return CpuBackend()


polyax_requires = ">=1,<2"


@hookimpl
def polyax_backends() -> Iterable[BackendSpec]:
    """The processor, through LLVM."""
    return [BackendSpec("cpu", _probe, _open)]


@hookimpl
def polyax_lowerings(backend: Backend) -> Mapping[Primitive, Lowering] | None:
    """Products through BLAS, linear algebra through LAPACK."""
    if backend.name != "cpu":
        return None
    from polyax_cpu.lowerings import LOWERINGS

    return LOWERINGS
