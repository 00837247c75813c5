"""How polyax finds this backend. Its entry point in pyproject.toml names this module, so it imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable

from polyax.backend import Backend, BackendSpec, hookimpl
from polyax_kernels.api import settings  # noqa: F401  # declares them

polyax_requires = ">=1,<2"


@hookimpl
def polyax_backends() -> Iterable[BackendSpec]:
    """One platform, which runs when it is asked for by name: machine code for the processor is faster."""
    return [BackendSpec("wasm", probe=why_not, open=make_backend, priority=-60)]


def why_not() -> str | None:
    """None if wasmtime can be used, else the reason as users will read it."""
    try:
        import wasmtime  # noqa: F401
    except (ImportError, OSError) as e:
        return f'wasmtime can\'t be imported ({e}); pip install "polyax-wasm"'
    return None


def make_backend() -> Backend:
    from polyax_wasm.backend import WasmBackend

    return WasmBackend("wasm")
