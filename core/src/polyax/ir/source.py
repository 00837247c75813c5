"""Where in the user's program an equation comes from: kept as (code object, instruction), resolved only for errors."""

from __future__ import annotations

import os
import sys
from types import CodeType
from typing import Any, NamedTuple

_INTERNAL: set[str] = {os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep}
_KNOWN: dict[str, bool] = {}  # file name -> whether it is one of polyax's own


def register_internal(path: str) -> None:
    """Frames of files below ``path``, or of that file, are never shown as the user's line."""
    path = os.path.abspath(path)
    _INTERNAL.add(path if os.path.isfile(path) else path + os.sep)
    _KNOWN.clear()


def is_internal(filename: str) -> bool:
    known = _KNOWN.get(filename)
    if known is None:
        known = any(filename.startswith(p) for p in _INTERNAL) or filename.startswith("<frozen")
        _KNOWN[filename] = known
    return known


class DebugInfo(NamedTuple):
    """What error texts and tools say of a function that was traced, its arguments and results."""

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None
    result_paths: Any = None

    @staticmethod
    def of(fun: Any, traced_for: str = "unknown", arg_names: tuple[str, ...] | None = None) -> DebugInfo:
        """What a function itself tells."""
        code = getattr(fun, "__code__", None)
        name = getattr(fun, "__name__", type(fun).__name__)
        where = f" at {code.co_filename}:{code.co_firstlineno}" if code else ""
        return DebugInfo(traced_for, name + where, arg_names)

    @property
    def func_name(self) -> str:
        return self.func_src_info.split(" at ")[0]

    def with_unknown_names(self) -> DebugInfo:
        return self._replace(arg_names=None, result_paths=None)

    def safe_arg_names(self, expected: int) -> tuple[str, ...]:
        """A name for each of so many arguments; empty ones if others are known."""
        names = self.arg_names
        return names if names is not None and len(names) == expected else ("",) * expected


# --- scopes: names and transformations around an equation within its program, outermost first, as in
# "mlp/jvp(linear)/act". Transformations are around the first name after them: until it comes, their parentheses are
# open.


def inside(scope: str, name: str) -> str:
    """An open scope with one more name: a user's, or a transformation with its parenthesis.

    >>> inside(inside("mlp/vmap(jvp(", "linear"), "act")
    'mlp/vmap(jvp(linear))/act'
    """
    if not scope.endswith("("):
        return f"{scope}/{name}" if scope else name
    return scope + (name if name.endswith("(") else _closed(name, scope))


def _closed(text: str, opened: str) -> str:
    """``text`` with the parentheses that ``opened`` lacks."""
    return text + ")" * (opened.count("(") - opened.count(")"))


class Source(NamedTuple):
    code: CodeType
    instruction: int
    opened: str = ""

    @property
    def scope(self) -> str:
        """Names and transformations around the equation.

        >>> Source(inside.__code__, 0, "mlp/jvp(").scope
        'mlp/jvp()'
        """
        return _closed(self.opened, self.opened)

    name_stack = scope  # as JAX has it

    def transposed(self, scope: str) -> Source:
        """Where an equation of a backward pass comes from that ``scope``, an open one, is around.

        >>> Source(inside.__code__, 0, "mlp/jvp(linear)/act").transposed("mlp").scope
        'mlp/transpose(jvp(linear))/act'
        """
        own = self.opened.removeprefix(scope).removeprefix("/")
        if "jvp(" not in own:  # in a loop, of which the scope tells that it runs backwards
            return self
        first, end, rest = own.partition(")/")
        name = first + end.rstrip("/")
        beyond = name.count(")") - name.count("(")  # they close what was open in scope
        around = inside(inside(scope, "transpose("), name[:-beyond] if beyond > 0 else name)
        return self._replace(opened=f"{around}/{rest}" if rest else around)

    @property
    def traceback(self) -> Source:
        """The line, as JAX's programs tell where they come from: what ``user_context`` takes."""
        return self

    def same_place(self, other: Source | None) -> bool:
        """Whether both are one instruction of the user's program, whatever names are around it."""
        return other is not None and self.code is other.code and self.instruction == other.instruction

    @property
    def line(self) -> int:
        for start, end, line in self.code.co_lines():
            if start <= self.instruction < end and line is not None:
                return line
        return self.code.co_firstlineno

    def __str__(self) -> str:
        scope = f" in {self.scope}" if self.scope else ""
        return f"{self.code.co_filename}:{self.line} ({self.code.co_name}){scope}"


class Nowhere(NamedTuple):
    """Where an equation comes from that tells no line: the program that it is part of is polyax's own, so that it comes
    from where that is called."""

    traceback: None = None
    name_stack: str = ""


NOWHERE = Nowhere()


Place = tuple[CodeType, int]
"""A code object of the user's, and which of its instructions."""


def user_place() -> Place | None:
    """Where the innermost frame that is not polyax's own is at."""
    frame = sys._getframe(1)
    known = _KNOWN
    while frame is not None:
        code = frame.f_code
        internal = known.get(code.co_filename)
        if internal is None:
            internal = is_internal(code.co_filename)
        if not internal:
            return code, frame.f_lasti
        frame = frame.f_back
    return None


_new = tuple.__new__


def user_source(scope: str = "") -> Source | None:
    """That place, as what equations come from."""
    place = user_place()
    return None if place is None else _new(Source, (*place, scope))  # half the time of Source(...)
