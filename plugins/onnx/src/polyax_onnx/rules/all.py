"""All rules: importing this fills the table."""

from __future__ import annotations

from polyax_onnx.rules import arrays, elementwise, indexing, order, special  # noqa: F401
from polyax_onnx.rules.table import RULES as RULES
