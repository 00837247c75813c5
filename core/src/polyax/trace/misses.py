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
        count = lambda found: sum(map(len, found.values()))
        closest = min((_differences(old, key, names) for old in seen), key=count)
        lines += [f"  for {defined}", "  all previously seen cache keys differ. For the closest previous key:"]
        lines += [line for what, told in closest.items() for line in (f"  {what}:", *[f"  * {one}" for one in told])]
    else:
        lines += ["  never seen function:", f"    {defined}, id={id(fun)}"]
    if again and not seen:
        lines += [
            "  but seen another function defined on the same line; maybe it is defined repeatedly, which prevents",
            "  caching: define and jit it once, outside of the loop or function that calls it.",
        ]
    return "\n".join(lines)


def _differences(old: Key, new: Key, names: Sequence[str]) -> dict[str, list[str]]:
    """One line for each thing that changed, by what kind of thing it is."""
    context: list[str] = []
    if old.settings != new.settings:
        context += _settings(config.traced_values(old.settings), config.traced_values(new.settings))
    if old.axes != new.axes:
        context.append(f"mapped axes, now {dict(new.axes)} and before {dict(old.axes)}")
    trees = [
        f"at {_place(path)}, now {now} and before {before}, so {why}"
        for path, now, before, why in equality_errors_pytreedef(new.in_tree, old.in_tree)
    ]
    types = _types(old.avals, new.avals, names) if old.in_tree == new.in_tree else []
    found = {
        "Tracing context doesn't match, e.g. due to config or context manager": context,
        "different input pytree": trees,
        "different static arguments": _static(old.static, new.static),
        "different input types": types,
    }
    return {what: told for what, told in found.items() if told}


def _place(path: tuple[Any, ...]) -> str:
    """A path into ``(args, kwargs)``."""
    if not path:
        return "the arguments"
    return ("args", "kwargs")[path[0].idx] + keystr(path[1:])


def _types(old: Sequence[ShapedArray], new: Sequence[ShapedArray], names: Sequence[str]) -> list[str]:
    def told(a: ShapedArray, other: ShapedArray) -> str:
        weak = "" if a.weak_type == other.weak_type else f"{{weak_type={a.weak_type}}}"
        return f"{a.str_short(short_dtypes=True)}{weak}"

    pairs = zip(names, old, new, strict=False)
    return [
        f"at {name}, now {told(b, a)} and before {told(a, b)}{'' if a.weak_type == b.weak_type else _WEAK}"
        for name, a, b in pairs
        if a != b
    ]


_WEAK = ", see https://docs.jax.dev/en/latest/type_promotion.html#weak-types"


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
    return [f"jax_{n} differs: now {new[n]} and before {old[n]}" for n in new if new[n] != old[n]]
