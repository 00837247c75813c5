"""Where in the user's program an equation comes from: kept as (code object, instruction), resolved only for errors."""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import sys
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType, MethodType
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

    @property
    def func_filename(self) -> str | None:
        return self._place()[0] or None

    @property
    def func_lineno(self) -> int | None:
        line = self._place()[1]
        return int(line) if line else None

    def _place(self) -> tuple[str, str]:
        file, _, line = self.func_src_info.partition(" at ")[2].rpartition(":")
        return file, line

    def with_unknown_names(self) -> DebugInfo:
        return self._replace(arg_names=None, result_paths=None)

    def safe_arg_names(self, expected: int) -> tuple[str, ...]:
        """A name for each of so many arguments; empty ones if others are known."""
        names = self.arg_names
        return names if names is not None and len(names) == expected else ("",) * expected


def code_of(fun: Callable[..., Any]) -> tuple[CodeType | None, int, bool]:
    """The code that runs, how many of its parameters those who call it don't give, and whether it is the function's
    own: objects that can be called have no place."""
    if type(fun) is FunctionType and not fun.__dict__:  # most are, and this is done for each trace
        return fun.__code__, 0, True
    skipped = 0
    while isinstance(fun, functools.partial):
        skipped += len(fun.args)
        fun = fun.func
    fun = inspect.unwrap(fun)
    code = getattr(fun, "__code__", None)
    if code is None:
        return getattr(type(fun).__call__, "__code__", None), skipped + 1, False
    return code, skipped + isinstance(fun, MethodType), True


class FunctionName(str):
    """The name of a function that was traced. It goes on into all programs that are derived from its own, so that
    these can ``tell`` of it when they are asked: given their inputs and results."""

    __slots__ = ("tell",)

    def __new__(cls, name: str, tell: Callable[[Sequence[Any], Sequence[Any]], DebugInfo]) -> FunctionName:
        self = super().__new__(cls, name)
        self.tell = tell
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


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
    def column(self) -> int:
        """Where in its line the call or the operator begins, from 0 on; 0 if Python was told not to keep that."""
        positions = itertools.islice(self.code.co_positions(), self.instruction // 2, None)
        return next(positions, (None,) * 4)[2] or 0

    @property
    def place(self) -> str:
        """File, line, column and function, as JAX writes them.

        >>> Source(inside.__code__, 0).place.endswith(f"source.py:{Source(inside.__code__, 0).line} (inside)")
        True
        """
        return f"{self._at()} ({self.code.co_qualname})"

    def _at(self) -> str:
        column = f":{self.column}" if self.column else ""
        return f"{self.code.co_filename}:{self.line}{column}"

    @property
    def line(self) -> int:
        for start, end, line in self.code.co_lines():
            if start <= self.instruction < end and line is not None:
                return line
        return self.code.co_firstlineno

    @property
    def by_line(self) -> str:
        """The text without the column, for what counts by lines.

        >>> Source(inside.__code__, 0).by_line.endswith(f"source.py:{Source(inside.__code__, 0).line} (inside)")
        True
        """
        return self._text(f"{self.code.co_filename}:{self.line}")

    def _text(self, at: str) -> str:
        scope = f" in {self.scope}" if self.scope else ""
        return f"{at} ({self.code.co_name}){scope}"

    def __str__(self) -> str:
        return self._text(self._at())


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
