"""Calls of Python functions from programs: they get copies, which they may keep."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.control.callback import CALLBACKS
from polyax.reference.table import RULES


def _call(*args: np.ndarray, callback: Any, result_avals: Any, **_: Any) -> list[np.ndarray]:
    return callback([np.array(x) for x in args], result_avals)


for _p in CALLBACKS:
    RULES[_p] = _call
