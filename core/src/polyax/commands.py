"""What ``python -m polyax explain`` does: a function in a file, types as words, and what it is compiled to."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Callable, Sequence
from typing import Any

from polyax.api import ShapeDtypeStruct, draw, explain

_TYPE = re.compile(r"([a-z]+\d*)\[([\d,\s]*)\]")
_LONG = {"f": "float", "i": "int", "u": "uint", "c": "complex", "bf": "bfloat"}


class UsageError(ValueError):
    """What was asked for can't be done as it was written."""


def explain_function(target: str, arguments: Sequence[str], picture: str | None = None) -> None:
    """Explains ``FILE:FUNCTION`` for arguments as ``argument`` reads them; saves a drawing as ``picture``."""
    fun, values = function(target), [argument(text) for text in arguments]
    explain(fun)(*values)
    if picture is not None:
        try:
            path = draw(fun)(*values).save(picture)
        except (ImportError, ValueError) as e:
            raise UsageError(str(e)) from None
        print(f"\ndrawn to {path}")


def function(target: str) -> Callable[..., Any]:
    """The function that ``FILE:FUNCTION`` names; the file is run for it, though not as ``__main__``."""
    path, _, name = target.rpartition(":")
    if not path:
        raise UsageError(f"expected FILE:FUNCTION, got {target!r}")
    found = runpy.run_path(path, run_name="explained").get(name)
    if not callable(found):
        raise UsageError(f"{path} has no function named {name!r}")
    return found


def argument(text: str) -> Any:
    """A type, or a number.

    >>> argument("f32[8,16]"), argument("bool[]"), argument("0.5")
    (ShapeDtypeStruct(shape=(8, 16), dtype=float32), ShapeDtypeStruct(shape=(), dtype=bool), 0.5)
    """
    found = _TYPE.fullmatch(text)
    try:
        if found is None:
            return ast.literal_eval(text)
        return ShapeDtypeStruct([int(n) for n in found.group(2).split(",") if n.strip()], _dtype(found.group(1)))
    except (TypeError, ValueError, SyntaxError):
        raise UsageError(f"arguments are types such as f32[8,16], or numbers; got {text!r}") from None


def _dtype(name: str) -> str:
    short = re.fullmatch(r"(f|i|u|c|bf)(\d+)", name)
    return _LONG[short.group(1)] + short.group(2) if short else name
