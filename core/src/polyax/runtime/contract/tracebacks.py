"""Tracebacks that show the user's lines: polyax's own frames are removed where an error leaves a public function.
Warnings show them too.

Must cost nothing while no error is raised.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType, TracebackType
from typing import Any, ParamSpec, TypeVar

from polyax.ir.blame import note
from polyax.ir.config import config
from polyax.ir.primitive import not_repeatable
from polyax.ir.source import is_internal

P = ParamSpec("P")
R = TypeVar("R")

NOTE = "(polyax's own frames are left out of this traceback; POLYAX_TRACEBACK_FILTERING=0 shows them.)"


def api_boundary(fun: Callable[P, R]) -> Callable[P, R]:
    """Decorator of public functions: errors that leave them show the user's frames alone.

    Nested boundaries do no harm: user code called by polyax and polyax called by it keep the user's frames.
    """

    @functools.wraps(fun)
    def with_filtered_errors(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True
        try:
            return fun(*args, **kwargs)
        except Exception as e:
            show_user_frames(e)
            raise  # a bare raise adds no entry for this frame

    return with_filtered_errors


def guard(module: ModuleType, boundary: Callable[..., Any] = api_boundary) -> None:
    """Replaces the public functions of ``module`` by ones behind a boundary, which filters tracebacks. Library code
    calls the functions themselves, where they are defined, and pays nothing."""
    for name, value in vars(module).items():
        if not name.startswith("_"):
            setattr(module, name, guarded(value, module.__name__, name, boundary))


def guarded(value: Any, module: str, name: str, boundary: Callable[..., Any] = api_boundary) -> Any:
    """A function behind a boundary, as ``name`` of ``module``, where pickle finds it; anything else as it is."""
    if not isinstance(value, FunctionType):
        return value
    behind = boundary(value)
    behind.__module__, behind.__qualname__ = module, name
    return behind


def show_user_frames(error: BaseException) -> None:
    """Filters the traceback of ``error``, unless the user wants to see all of it; and tells it as ``retell`` says."""
    for change in _tellings:
        error.args = tuple([change(x) if type(x) is str else x for x in error.args])
    if config.traceback_filtering:
        filter_traceback(error)


_tellings: list[Callable[[str], str]] = []


def retell(change: Callable[[str], str]) -> None:
    """From now on texts of errors are changed so, before users see them."""
    _tellings.append(change)


def filter_traceback(error: BaseException) -> None:
    """Removes internal frames from the traceback of ``error`` and of the errors that it came from."""
    removed = False
    for e in _chain(error):
        frames = list(_frames(e.__traceback__))
        kept = [tb for tb in frames if not is_internal(tb.tb_frame.f_code.co_filename)]
        if len(kept) < len(frames):
            e.with_traceback(_join(kept))  # which a class can't refuse
            removed = True
    if removed and NOTE not in getattr(error, "__notes__", ()):
        note(error, NOTE)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """``error``, what it was raised from, and what was being handled then; each once."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        e = pending.pop()
        if e is not None and id(e) not in seen:
            seen.add(id(e))
            yield e
            pending += [e.__cause__, None if e.__suppress_context__ else e.__context__]


def _frames(tb: TracebackType | None) -> Iterator[TracebackType]:
    while tb is not None:
        yield tb
        tb = tb.tb_next


def _join(frames: list[TracebackType]) -> TracebackType | None:
    joined: TracebackType | None = None
    for tb in reversed(frames):
        joined = TracebackType(joined, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return joined


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the user's line that led here."""
    not_repeatable()
    level, frame = 1, sys._getframe()
    ours = lambda file: is_internal(file) or file == functools.__file__  # which calls cached properties
    while frame.f_back is not None and ours(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
