"""``jax._src.traceback_util``: which frames an error's traceback shows."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

from polyax.ir.source import is_internal, register_internal
from polyax.runtime.contract.tracebacks import api_boundary as _boundary


class ExcludedPaths(list[str]):
    """Paths whose frames aren't shown; adding one here excludes it."""

    def append(self, path: str) -> None:
        super().append(path)
        register_internal(path)


_exclude_paths = ExcludedPaths()


def register_exclusion(path: str) -> None:
    """Frames of files below ``path``, or of the file ``path``, aren't shown."""
    _exclude_paths.append(path)


def include_frame(f: FrameType) -> bool:
    """Whether the frame is a user's."""
    return not is_internal(f.f_code.co_filename)


def api_boundary(fun: Callable[..., Any], *, repro_api_name: str | None = None, repro_user_func: bool = False) -> Any:
    """Decorator: errors that leave ``fun`` show the user's frames alone."""
    return _boundary(fun)
