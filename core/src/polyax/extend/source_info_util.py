"""``polyax.extend.source_info_util``: which files are a library's own, and none of the user's."""

from __future__ import annotations

from polyax.ir.source import register_internal

__all__ = ["register_exclusion"]


def register_exclusion(path: str) -> None:
    """Lines of files below ``path``, or of the file ``path``, are never told as the user's."""
    register_internal(path)
