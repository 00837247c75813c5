"""How polyax finds this backend. Imports no engine until the platform is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from polyax.backend import Backend, BackendSpec, hookimpl

polyax_requires = ">=1,<2"


@hookimpl
def polyax_backends() -> Iterable[BackendSpec]:
    """One platform, which runs when it is asked for by name."""
    return [BackendSpec("onnx", probe=why_not, open=make_backend, priority=-60)]


def why_not() -> str | None:
    """None if this backend can work here, else the reason as users will read it."""
    missing = [name for name in ("onnx", "onnxruntime") if not _installed(name)]
    return f"{' and '.join(missing)} can't be imported: pip install {' '.join(missing)}" if missing else None


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:  # somebody put something else in its place
        return False


def make_backend() -> Backend:
    from polyax_onnx.backend import OnnxBackend

    return OnnxBackend()
