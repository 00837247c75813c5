"""Small C functions with total semantics, made for the types that a kernel uses, and C literals.

Each helper is a pair of its name and its text, without the words that a dialect puts before functions. ``types`` maps
names of dtypes to the dialect's types.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

Helper = tuple[str, str]
SHIFTS = ("shift_left", "shift_right_logical", "shift_right_arithmetic")


def whole(value: int, dtype: np.dtype, ctype: str, long: str = "LL") -> str:
    """An integer literal of its type; the least int64 has none in C. ``long`` ends those of 64 bits."""
    if dtype.name == "bool":
        return "true" if value else "false"
    if value == np.iinfo("int64").min:
        return f"({-(2**63) + 1}{long} - 1)"
    text = f"{value}" if dtype.itemsize < 8 else f"{value}{'U' if dtype.kind == 'u' else ''}{long}"
    text += "u" if dtype.name == "uint32" else ""
    return text if dtype.itemsize >= 4 and value >= 0 else f"(({ctype}){text})"


def real(value: np.floating) -> str:
    """A literal with just the digits that it needs; narrow floats are written as float."""
    if np.isnan(value):
        return "NAN"
    if np.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = str(value) + ("f" if value.dtype.itemsize == 4 else "")
    return f"({text})" if np.signbit(value) else text


_TEXTS = {
    "max": "{t} {name}({t} x, {t} y) {{ return {equal}x > y{nan} ? x : y; }}",
    "min": "{t} {name}({t} x, {t} y) {{ return {equal}x < y{nan} ? x : y; }}",
    "div": "{t} {name}({t} x, {t} y) {{ return y == 0 ? ({t})-1 : {overflow}x / y; }}",
    "shift_left": "{t} {name}({t} x, {t} n) {{ return ({u})n < {w} ? ({t})(({u})x << n) : 0; }}",
    "shift_right_logical": "{t} {name}({t} x, {t} n) {{ return ({u})n < {w} ? ({t})(({u})x >> n) : 0; }}",
    "shift_right_arithmetic": "{t} {name}({t} x, {t} n) {{ return ({t})(({s})x >> (({u})n < {w} ? n : {w} - 1)); }}",
    "floordiv": "{t} {name}({t} x, {t} y) {{ if (y == 0) return ({t})-1; {minus}return x / y{down}; }}",
    "mod": "{t} {name}({t} x, {t} y) {{ if (y == 0) return x; {none}{t} r = x % y; return r{up}; }}",
}


def operation(name: str, dtype: np.dtype, types: Mapping[str, str]) -> Helper:
    """Minima and maxima, guarded division, shifts past the width, and division that rounds down."""
    full = f"{name}_{dtype.name}"
    if name in ("max", "min"):
        return full, _TEXTS[name].format(name=full, **_extremum(name, dtype, types))
    t, width, signed = types[dtype.name], 8 * dtype.itemsize, dtype.kind == "i"
    u, s = types[f"uint{width}"], types[f"int{width}"]
    parts = {
        "overflow": f"y == -1 ? ({t})(0 - ({u})x) : " if signed else "",
        "minus": f"if (y == -1) return ({t})(0 - ({u})x); " if signed else "",
        "none": "if (y == -1) return 0; " if signed else "",
        "down": " - (x % y != 0 && (x % y < 0) != (y < 0))" if signed else "",
        "up": " + (r != 0 && (r < 0) != (y < 0) ? y : 0)" if signed else "",
    }
    return full, _TEXTS[name].format(t=t, u=u, s=s, w=width, name=full, **parts)


def _extremum(name: str, dtype: np.dtype, types: Mapping[str, str]) -> dict[str, str]:
    """NaN wins, and the two zeros are ordered."""
    real = dtype.kind == "f"
    zeros = "x == y ? (signbit(x) ? y : x) : " if name == "max" else "x == y ? (signbit(x) ? x : y) : "
    return {"t": types[dtype.name], "equal": zeros if real else "", "nan": " || x != x" if real else ""}


def saturate(source: np.dtype, target: np.dtype, types: Mapping[str, str], long: str = "LL") -> Helper:
    """Float to integer. Both limits are powers of two, or 0: exact as floats."""
    limits, t, f = np.iinfo(target), types[target.name], types[source.name]
    least, greatest = (whole(int(n), target, t, long) for n in (limits.min, limits.max))
    name = f"saturate_{source.name}_{target.name}"
    above, below = 2.0 ** (limits.bits - (target.kind == "i")), float(limits.min)
    suffix = "f" if source.itemsize == 4 else ""
    choice = f"x >= {above}{suffix} ? {greatest} : x > {below}{suffix} ? ({t})x : x == x ? {least} : 0"
    return name, f"{t} {name}({f} x) {{ return {choice}; }}"


def bitcast(source: np.dtype, target: np.dtype, types: Mapping[str, str]) -> Helper:
    f, t = types[source.name], types[target.name]
    name = f"bits_{source.name}_{target.name}"
    return name, f"{t} {name}({f} x) {{ {t} y; memcpy(&y, &x, sizeof y); return y; }}"
