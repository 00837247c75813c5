"""Why a function is traced once more: which argument differs from all calls seen before, and how.

Told by the logger ``polyax`` if ``config.explain_cache_misses`` is on. Must not know how programs are made.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.source import user_source
from polyax.trace.calls import Key
from polyax.trace.paths import equality_errors_pytreedef, keystr

logger = logging.getLogger("polyax")
_traced: weakref.WeakKeyDictionary[CodeType, Any] = weakref.WeakKeyDictionary()  # code -> the function traced last


def note(fun: Callable[..., Any], seen: Iterable[Key], key: Key, names: Callable[[], Sequence[str]]) -> None:
    """To be called before each trace: logs why ``key`` is in none of the calls ``seen``, if that is asked for."""
    code = getattr(fun, "__code__", None)
    again = code is not None and code in _traced and _traced[code]() is not fun
    if config.explain_cache_misses:
        logger.warning("%s", _explanation(fun, list(seen), key, names(), again))
    if code is not None:
        _traced[code] = weakref.ref(fun)


def _explanation(fun: Any, seen: list[Key], key: Key, names: Sequence[str], again: bool) -> str:
    code, name = getattr(fun, "__code__", None), getattr(fun, "__name__", repr(fun))
    defined = f"{name} defined at {code.co_filename}:{code.co_firstlineno}" if code else name
    lines = [f"TRACING CACHE MISS at {user_source()}:"]
    if seen:
        closest = min((_differences(old, key, names) for old in seen), key=len)
        lines += [f"  for {defined}", "  all previously seen calls differ. The closest one:"]
        lines += [f"  * {line}" for line in closest]
    else:
        lines += ["  never seen function:", f"    {defined}, id={id(fun)}"]
    if again and not seen:
        lines += [
            "  but seen another function defined on the same line; maybe it is defined repeatedly, which prevents",
            "  caching: define and jit it once, outside of the loop or function that calls it.",
        ]
    return "\n".join(lines)


def _differences(old: Key, new: Key, names: Sequence[str]) -> list[str]:
    """One line for each thing that changed."""
    lines = [
        f"at {_place(path)}, now {now} and before {before}, so {why}"
        for path, now, before, why in equality_errors_pytreedef(new.in_tree, old.in_tree)
    ]
    if old.in_tree == new.in_tree:
        lines += _types(old.avals, new.avals, names)
    lines += _static(old.static, new.static)
    if old.settings != new.settings:
        lines += _settings(config.traced_values(old.settings), config.traced_values(new.settings))
    if old.axes != new.axes:
        lines.append(f"mapped axes, now {dict(new.axes)} and before {dict(old.axes)}")
    return lines


def _place(path: tuple[Any, ...]) -> str:
    """A path into ``(args, kwargs)``."""
    if not path:
        return "the arguments"
    return ("args", "kwargs")[path[0].idx] + keystr(path[1:])


def _types(old: Sequence[ShapedArray], new: Sequence[ShapedArray], names: Sequence[str]) -> list[str]:
    def told(a: ShapedArray) -> str:
        return f"{a}{' (weakly typed)' if a.weak_type else ''}"

    pairs = zip(names, old, new, strict=False)
    return [f"at {name}, now {told(b)} and before {told(a)}" for name, a, b in pairs if a != b]


def _static(old: Sequence[Any], new: Sequence[Any]) -> list[str]:
    before = {which: (kind, value) for which, kind, value in old}
    now = {which: (kind, value) for which, kind, value in new}
    return [
        f"at static argument {which!r}, now {_value(now.get(which))} and before {_value(before.get(which))}"
        for which in {**before, **now}
        if before.get(which) != now.get(which)
    ]


def _value(entry: tuple[type, Any] | None) -> str:
    return "absent" if entry is None else f"{entry[1]!r} of type {entry[0].__name__}"


def _settings(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [f"at config.{n}, now {new[n]!r} and before {old[n]!r}" for n in new if new[n] != old[n]]
