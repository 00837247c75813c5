"""The current trace of a thread. There are no levels: each interpreter makes the one below it current for its rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyax.ir.primitive import ambient, eval_trace
from polyax.ir.source import inside


def install_eval_trace(trace: Any) -> None:
    """Called once, by ``runtime.dispatch``: the trace that runs things."""
    eval_trace[:] = [trace]


def current_trace() -> Any:
    return ambient.trace or eval_trace[0]


class set_trace:
    """Makes ``trace`` current inside the block; None means plain evaluation."""

    __slots__ = ("before", "trace")

    def __init__(self, trace: Any) -> None:
        self.trace = None if eval_trace and trace is eval_trace[0] else trace

    def __enter__(self) -> None:
        self.before = ambient.trace
        ambient.trace = self.trace

    def __exit__(self, *_: object) -> None:
        ambient.trace = self.before


class transformed:
    """Equations that are made inside the block are those of a function to which ``transformation`` is done."""

    __slots__ = ("before", "opened")

    def __init__(self, transformation: str) -> None:
        self.opened = f"{transformation}("

    def __enter__(self) -> None:
        self.before = ambient.scope
        ambient.scope = inside(self.before, self.opened)

    def __exit__(self, *_: object) -> None:
        ambient.scope = self.before


def axis_env() -> Mapping[Any, int]:
    """Name -> size, innermost binding last."""
    return ambient.axis_env


class extend_axis_env:
    """Binds an axis name inside the block."""

    __slots__ = ("before", "name", "size")

    def __init__(self, name: Any, size: int) -> None:
        self.name = name
        self.size = size

    def __enter__(self) -> None:
        self.before = ambient.axis_env
        if self.name is not None:
            ambient.axis_env = {**self.before, self.name: self.size}

    def __exit__(self, *_: object) -> None:
        ambient.axis_env = self.before
