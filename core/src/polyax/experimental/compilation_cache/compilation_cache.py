"""The directory of compiled code, as functions; ``config.cache_dir`` is the same as a setting."""

from __future__ import annotations

import os

from polyax.ir.config import config
from polyax.runtime.contract.cache import forget_directories

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Keeps in ``path`` what is compiled from now on, and looks for it there.

    The directory is made if need be, for the user alone: whoever can write to it can have code run. One that others
    can write to isn't used, and a warning says so.

    >>> import polyax, tempfile
    >>> before = polyax.config.cache_dir
    >>> set_cache_dir(tempfile.mkdtemp())
    >>> polyax.jit(lambda x: x + 1)(2.0).item()
    3.0
    >>> polyax.config.update("cache_dir", before)
    """
    config.update("cache_dir", os.fspath(path))


def reset_cache() -> None:
    """Looks at the directory anew before it is used next: one that couldn't be written to may be now.

    What is in the directory stays, as do programs that this process has compiled; ``polyax.clear_caches`` forgets
    these.

    >>> reset_cache()
    """
    forget_directories()
