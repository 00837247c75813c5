"""Whose native code ended the process: the stack that Python prints then has a frame that says so.

For ``config.checks``: each launch, each compilation and each step costs one call more. Must not know what runs.
"""

from __future__ import annotations

import faulthandler
import io
import types
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])
LONGEST = 400
"""Letters that a stack shows of a function's name."""


def named(function: F, text: str) -> F:
    """``function``, called by one that is named ``text``. From now on Python says at its end where it was.

    >>> import traceback
    >>> def stack():
    ...     return [frame.name for frame in traceback.extract_stack()]
    >>> named(stack, "kernel 'mul' of plugin 'mine'")()[-2]
    "kernel 'mul' of plugin 'mine'"
    """
    _tell_at_the_end()

    def call(*args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)

    code = call.__code__.replace(co_name=text if len(text) <= LONGEST else text[: LONGEST - 3] + "...")
    made = types.FunctionType(code, call.__globals__, code.co_name, None, call.__closure__)
    return made  # pyright: ignore[reportReturnType]  # it takes and gives the same


def _tell_at_the_end() -> None:
    if not faulthandler.is_enabled():
        with suppress(io.UnsupportedOperation, AttributeError, RuntimeError):  # there is no standard error
            faulthandler.enable()
