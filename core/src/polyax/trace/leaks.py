"""``checking_leaks``: a traced function must not leave its tracers behind, in globals or attributes or closures.

Asks the garbage collector, which takes long: only while somebody looks for a leak. It has to collect only if tracers
are left, to know those that nothing but a cycle of their own holds.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping
from types import CellType, FrameType, FunctionType, GeneratorType, ModuleType
from typing import Any

from polyax.ir.config import config
from polyax.trace.tracer import Trace, Tracer


def check_leaks(trace: Trace, of: Any) -> None:
    """For the end of a trace, when nobody but the user can still hold tracers.

    Raises:
      Exception: there are some; their types, where they were computed and what holds them are told.
    """
    if not config.check_tracer_leaks:
        return
    if _tracers(trace):
        gc.collect()
    left = _tracers(trace)
    if left:
        shown = "\n\n".join(f"{x.aval}{x.origin()}{_chain(x, left)}" for x in left)
        raise Exception(
            f"Leaked trace {type(trace).__name__} of {of or 'a function'}. Leaked tracer(s):\n\n{shown}\n\n"
            "Return such values from the function instead of keeping them."
        )


def _tracers(trace: Trace) -> list[Any]:
    return [x for x in gc.get_referrers(trace) if isinstance(x, Tracer)]


def _chain(x: Any, left: list[Any]) -> str:
    """What holds ``x``, what holds that, and so on: a line for each."""
    lines: list[str] = []
    seen = {id(left)}
    while not isinstance(x, ModuleType) and id(x) not in seen:
        seen.add(id(x))
        holder, how = _holder(x, seen)
        if holder is None:
            break
        lines.append(f"\n{_named(x)} is referred to by {how}")
        x = holder
    return "".join(lines)


def _holder(x: Any, seen: set[int]) -> tuple[Any, str]:
    """Who holds ``x``, and as what; the function for a cell of it, the object for the dictionary of its attributes."""
    for holder in _referrers(x, seen):
        if isinstance(holder, CellType):
            if (f := _function_of(holder, seen)) is not None:
                free = zip(f.__code__.co_freevars, f.__closure__ or (), strict=True)
                return f, f"{_named(f)} ({f.__name__}) closed-over variable {_keys(free, holder)}"
        elif isinstance(holder, dict):
            owner = next((o for o in _referrers(holder, seen) if getattr(o, "__dict__", None) is holder), None)
            if owner is not None:
                return owner, f"{_named(owner)}.{_keys(holder.items(), x)}"
            return holder, f"{_named(holder)}[{_keys(((repr(k), v) for k, v in holder.items()), x)}]"
        elif isinstance(holder, (list, tuple)):
            return holder, f"{_named(holder)}[{_keys(enumerate(holder), x)}]"
        else:
            attributes = getattr(holder, "__dict__", {})
            at = _keys(attributes.items(), x) if isinstance(attributes, Mapping) else ""
            return holder, _named(holder) + (f".{at}" if at else "")
    return None, ""


def _function_of(cell: CellType, seen: set[int]) -> FunctionType | None:
    """The one that closes over it; its cells are in a tuple."""
    functions = (f for cells in _referrers(cell, seen) for f in _referrers(cells, seen))
    return next((f for f in functions if isinstance(f, FunctionType)), None)


def _referrers(x: Any, seen: set[int]) -> list[Any]:
    """Without what only looks: the frames and generators of functions that run."""
    return [h for h in gc.get_referrers(x) if not isinstance(h, (FrameType, GeneratorType)) and id(h) not in seen]


def _keys(items: Iterable[tuple[Any, Any]], x: Any) -> str:
    return ", ".join(str(k) for k, v in items if v is x)


def _named(x: Any) -> str:
    return x.__name__ if isinstance(x, ModuleType) else f"<{type(x).__name__} {id(x)}>"
