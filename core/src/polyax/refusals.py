"""Where polyax refuses to be imported: in interpreters beside the main one, before NumPy is loaded there.

Native code holds addresses of objects of the interpreter that it was made in, and devices serve one for each process.
Must import nothing else of polyax.
"""

from __future__ import annotations

import contextlib
from importlib import import_module
from typing import Any


def in_main_interpreter() -> bool:
    """Whether this is the interpreter that the process began with.

    >>> in_main_interpreter()
    True
    """
    interpreters = _interpreters()
    return interpreters is None or interpreters.get_current() == interpreters.get_main()


def _interpreters() -> Any:
    """Python's module of that name, which is called so since 3.13; None where there can't be others."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        with contextlib.suppress(ImportError):
            return import_module(name)
    return None


if not in_main_interpreter():
    raise ImportError(
        "polyax can't be imported in a subinterpreter: native code and devices belong to the main interpreter of a "
        "process. Use threads, which compute at the same time, or processes (multiprocessing, concurrent.futures); "
        "under mod_wsgi, WSGIApplicationGroup %{GLOBAL} chooses the main interpreter."
    )
