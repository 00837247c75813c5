"""What the programs share: how they are listed, how their steps follow each other, and random data.

A program is a function without arguments that sets up and returns its step, a function without arguments as well.
Programs are written for JAX and import it by its name; what that means is decided by who runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Step = Callable[[], Any]
PROGRAMS: dict[str, Callable[[], Step]] = {}


def program(setup: Callable[[], Step]) -> Callable[[], Step]:
    """Decorator: lists a program under its name."""
    PROGRAMS[setup.__name__] = setup
    return setup


def stepping(step: Callable[..., tuple[Any, ...]], *state: Any) -> Step:
    """A function that goes from state to state; what ``step`` returns is the next one."""
    now = state

    def once() -> Any:
        nonlocal now
        now = step(*now)
        return now

    return once


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def whole(below: int, *shape: int, seed: int = 0) -> np.ndarray:
    """Random numbers from 0 on, below a bound."""
    return np.random.default_rng(seed).integers(0, below, shape).astype(np.int32)
