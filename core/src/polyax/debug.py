"""``polyax.debug``: looking into programs while they run."""

from __future__ import annotations

import string
from typing import Any

from polyax.control.callback import debug_callback as callback

__all__ = ["callback", "print"]

_print = print


class _Check(string.Formatter):
    """Goes through a format without values, and complains about arguments that it doesn't use."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return value

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused = [repr(n) for n in range(len(args)) if n not in used_args]
        unused += [repr(n) for n in kwargs if n not in used_args]
        if unused:
            raise ValueError(
                f"Unused arguments of the format string: {', '.join(unused)}. Name each of them in the text: "
                "debug.print('{}', x) or debug.print('{x}', x=x)."
            )


def print(
    fmt: str,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> None:
    """Prints ``fmt.format(*args, **kwargs)`` each time that the program comes here, on whatever device it runs.

    Args:
      fmt: a format string.
      ordered: prints happen in the order of the program.

    Raises:
      ValueError: an argument isn't used by ``fmt``.

    >>> print("x = {}", 1.5)
    x = 1.5
    """
    if not skip_format_check:
        _Check().format(fmt, *args, **kwargs)

    def show(*values: Any, **named: Any) -> None:
        _print(fmt.format(*values, **named))

    callback(show, *args, ordered=ordered, partitioned=partitioned, **kwargs)
