"""Lowerings that call libraries."""

from __future__ import annotations

from typing import Any

LOWERINGS: dict[Any, Any] = {}
