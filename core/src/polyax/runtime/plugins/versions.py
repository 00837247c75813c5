"""Versions of the contract: which of them a plugin was written for, in the words of package indices (``>=1,<2``)."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from polyax.runtime.contract.hooks import HookError

_PART = re.compile(r"\s*(>=|<=|==|!=|>|<|~=)\s*(\d+(?:\.\d+)?)\s*")
_OPERATIONS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


def why_not_for(requires: Any, api: tuple[int, int]) -> str | None:
    """Why version ``api`` of the contract isn't what ``requires`` says; None, if it is.

    Raises:
      HookError: ``requires`` isn't a range of versions.

    >>> why_not_for(">=1,<2", (1, 3)), why_not_for("~=1.2", (1, 3))
    (None, None)
    >>> why_not_for(">=2", (1, 3))
    'was written for versions >=2 of the contract of plugins, and this polyax has version 1.3'
    """
    parts = [_PART.fullmatch(part) for part in requires.split(",")] if isinstance(requires, str) else [None]
    if not all(parts):
        raise HookError(f"requires is {requires!r}, not a range of versions such as '>=1,<2'")
    if all(_holds(part[1], part[2], api) for part in parts if part is not None):
        return None
    mine = ".".join(map(str, api))
    return f"was written for versions {requires} of the contract of plugins, and this polyax has version {mine}"


def _holds(operation: str, text: str, api: tuple[int, int]) -> bool:
    """``1`` stands for ``1.0``, but for all of ``1.*`` where it is to be equal."""
    version = tuple(map(int, text.split(".")))
    if operation == "~=":
        return api >= version and api[0] == version[0]
    if operation in ("==", "!="):
        return _OPERATIONS[operation](api[: len(version)], version)
    return _OPERATIONS[operation](api, (*version, 0)[:2])
