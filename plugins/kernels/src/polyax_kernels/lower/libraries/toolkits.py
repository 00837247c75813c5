"""Whether libraries that some lowerings need are on this machine. Knows none of them."""

from __future__ import annotations

import importlib
from functools import cache


@cache
def why_missing(module: str, library: str, distributions: str) -> str | None:
    """None if the module that leads to a library can be imported, else why not, and how to get it.

    >>> why_missing("math", "Mathematics", "")
    >>> why_missing("mathematics", "Mathematics", "maths")
    "Mathematics can't be loaded (No module named 'mathematics'); pip install maths"
    """
    try:
        importlib.import_module(module)
    except ImportError as e:
        return f"{library} can't be loaded ({str(e).splitlines()[0]}); pip install {distributions}"
    return None
