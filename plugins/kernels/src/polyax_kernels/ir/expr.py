"""Scalar expressions of kernels: immutable, hash-consed, so that equal expressions are one object.

Consing tables live for one compilation: ``with consing():`` opens one (nested uses share the outermost). Inside it
``a is b`` decides equality, and every walk memoises on identity. Index expressions are of dtype int64.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Container, Generator, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")

INT = np.dtype("int64")
BOOL = np.dtype("bool")
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "is_finite"))
"""The operations whose result is bool whatever their operands are."""
PICKS = ("argmax", "argmin")
"""What folds of two carries combine by: a value and its index."""


class _Table(threading.local):
    entries: dict[Any, Expr] | None = None
    kept: dict[Callable[[], Any], Any]


_table = _Table()


@contextlib.contextmanager
def consing() -> Generator[None]:
    """Expressions made inside are unique; the table is dropped at the end."""
    if _table.entries is not None:
        yield
        return
    _table.entries, _table.kept = {}, {}
    try:
        yield
    finally:
        _table.entries, _table.kept = None, {}


def kept(make: Callable[[], T]) -> T:
    """What ``make`` gives, once for all expressions of a table: it may remember what it found out about them."""
    assert _table.entries is not None, "what is kept of expressions lives inside `with consing():`"
    if make not in _table.kept:
        _table.kept[make] = make()
    return _table.kept[make]


def _operator(name: str) -> Callable[[Expr, ExprLike], Expr]:
    """The method of Python's operator for the scalar operation ``name``."""
    return lambda self, other: op(name, self, _lift(other, self))


def _reflected(name: str) -> Callable[[Expr, ExprLike], Expr]:
    return lambda self, other: op(name, _lift(other, self), self)


class Expr:
    """A node. ``kind`` says what ``attr`` is:

    =========  ==========================  =========================================================================
    kind       attr                        args
    =========  ==========================  =========================================================================
    ``index``  Axis                        ()                        the loop index of an axis
    ``const``  Python scalar               ()
    ``param``  position                    ()                        a scalar launch argument
    ``op``     name in the scalar table    operands, all of one dtype (but ``select``: bool first)
    ``cast``   None                        (x,)                      to ``dtype``, with total semantics
    ``bitcast``  None                      (x,)                      the same bits read as ``dtype``, of the same width
    ``load``   Load                        indices, one per dimension of the operand, then mask and other if masked
    ``fold``   Fold                        initial values, then bodies; the value is carry number ``attr.which``
    =========  ==========================  =========================================================================

    Python's operators build expressions: ``index(i) * 4 + 1``; ``//`` and ``%`` round down, as for Python's integers.
    A Python scalar takes the other operand's dtype.
    """

    __slots__ = ("__weakref__", "args", "attr", "dtype", "free", "kind")

    kind: str
    dtype: np.dtype
    args: tuple[Expr, ...]
    attr: Any
    free: frozenset[Axis] | None
    """What ``free_axes`` found."""

    def __repr__(self) -> str:
        return pretty(self)

    __add__, __radd__ = _operator("add"), _reflected("add")
    __sub__, __rsub__ = _operator("sub"), _reflected("sub")
    __mul__, __rmul__ = _operator("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _operator("div"), _reflected("div")
    __floordiv__, __mod__ = _operator("floordiv"), _operator("mod")
    __and__, __or__, __xor__ = _operator("and"), _operator("or"), _operator("xor")
    __lshift__, __rshift__ = _operator("shift_left"), _operator("shift_right_logical")
    __lt__, __le__, __gt__, __ge__ = _operator("lt"), _operator("le"), _operator("gt"), _operator("ge")

    def __neg__(self) -> Expr:
        return op("neg", self)

    def __bool__(self) -> bool:
        which = 'choose with op("select", which, x, y)'
        raise TypeError(f"the value of {self} isn't known while a kernel is built: {which}")


ExprLike = Expr | int | float | bool


def _lift(x: ExprLike, like: Expr) -> Expr:
    return x if isinstance(x, Expr) else const(x, like.dtype)


def _entries() -> dict[Any, Expr]:
    assert _table.entries is not None, "expressions are made inside `with consing():`"
    return _table.entries


def make(kind: str, dtype: np.dtype, args: tuple[Expr, ...] = (), attr: Any = None) -> Expr:
    """The one expression with these parts."""
    entries = _entries()
    # 0.0 == -0.0, 1 == 1.0 == True, and NaN differs from itself: constants are told apart by their bits
    key = (kind, dtype, args, (type(attr), repr(attr)) if kind == "const" else attr)
    found = entries.get(key)
    if found is None:
        found = Expr()
        found.kind, found.dtype, found.args, found.attr, found.free = kind, dtype, args, attr, None
        entries[key] = found
    return found


def _quick(key: Axis | int, make: Callable[[], Expr]) -> Expr:
    """The index of an axis, or a constant index: what is asked for most has a key that is found quickly."""
    entries = _entries()
    found = entries.get(key)
    if found is None:
        found = entries[key] = make()
    return found


class Axis:
    """A loop axis. Identity is equality; ``extent`` is an int or a ``param`` expression."""

    __slots__ = ("extent", "name")

    def __init__(self, extent: int | Expr, name: str = "i") -> None:
        self.extent = extent
        self.name = name

    def __repr__(self) -> str:
        return self.name


def points(axes: Iterable[Axis]) -> int:
    """The combinations of the indices of loops, as far as their extents are known."""
    return math.prod([a.extent for a in axes if isinstance(a.extent, int)])


class Fold(NamedTuple):
    """``carry = combine(carry, body)`` over ``axes`` (outermost first), starting at the initial values.

    ``combine`` names one associative operation of the scalar table (``add mul max min and or xor``), or
    ``argmax``/``argmin``, whose carries are (value, index): the first of equal ones wins, NaN wins over all.
    Bodies may read the indices of ``axes``.
    """

    combine: str
    axes: tuple[Axis, ...]
    which: int = 0

    def __repr__(self) -> str:
        return f"{self.combine} over {self.axes}"


class Load(NamedTuple):
    """A read of operand ``slot``. A masked load gives ``other`` where the mask is false and reads nothing there."""

    slot: int
    masked: bool = False

    def __repr__(self) -> str:
        return f"{self.slot}"


def index(axis: Axis) -> Expr:
    return _quick(axis, lambda: make("index", INT, (), axis))


def const(value: Any, dtype: Any = INT) -> Expr:
    """A constant, rounded or wrapped to ``dtype``; ``attr`` is a Python bool, int or float."""
    if dtype is INT and type(value) is int:
        return _quick(value, lambda: _const(value, INT))
    return _const(value, np.dtype(dtype))


def _const(value: Any, dtype: np.dtype) -> Expr:
    if dtype.kind in "iu":
        bits = 8 * dtype.itemsize
        value = int(value) % (1 << bits)
        value -= (value >> bits - 1) << bits if dtype.kind == "i" else 0
    else:
        value = bool(value) if dtype.kind == "b" else float(dtype.type(value))
    return make("const", dtype, (), value)


def param(position: int, dtype: Any = INT) -> Expr:
    return make("param", np.dtype(dtype), (), position)


def op(name: str, *args: Expr) -> Expr:
    """A scalar operation; comparisons give bool, all others the dtype of their last operand."""
    return make("op", BOOL if name in COMPARISONS else args[-1].dtype, args, name)


def where(condition: Expr, x: ExprLike, y: ExprLike) -> Expr:
    """``x`` where ``condition`` holds, else ``y``; at least one of them is an expression."""
    like = x if isinstance(x, Expr) else y
    assert isinstance(like, Expr)
    return op("select", condition, _lift(x, like), _lift(y, like))


def cast(x: Expr, dtype: Any) -> Expr:
    dtype = np.dtype(dtype)
    return x if x.dtype == dtype else make("cast", dtype, (x,))


def bitcast(x: Expr, dtype: Any) -> Expr:
    dtype = np.dtype(dtype)
    return x if x.dtype == dtype else make("bitcast", dtype, (x,))


def load(slot: int, dtype: Any, indices: tuple[Expr, ...], mask: Expr | None = None, other: Expr | None = None) -> Expr:
    extra = () if mask is None else (mask, other if other is not None else const(0, dtype))
    return make("load", np.dtype(dtype), indices + extra, Load(slot, mask is not None))


def fold(
    combine: str, axes: tuple[Axis, ...], inits: tuple[Expr, ...], bodies: tuple[Expr, ...], which: int = 0
) -> Expr:
    return make("fold", bodies[which].dtype, inits + bodies, Fold(combine, axes, which))


def rebuild(x: Expr, args: tuple[Expr, ...]) -> Expr:
    """``x`` with other operands."""
    return x if args == x.args else make(x.kind, x.dtype, args, x.attr)


def rewrite(x: Expr, rule: Callable[[Expr], Expr | None], memo: dict[Expr, Expr] | None = None) -> Expr:
    """Bottom-up: ``rule`` sees each node with rewritten operands and returns its replacement, or None to keep it.

    Iterative and memoised on identity: linear in the number of distinct nodes.
    """
    memo = {} if memo is None else memo
    for node in postorder(x, known=memo):
        args = tuple([memo[a] for a in node.args])
        new = node if args == node.args else make(node.kind, node.dtype, args, node.attr)
        replaced = rule(new)
        memo[node] = new if replaced is None else replaced
    return memo[x]


def postorder(*roots: Expr, known: Container[Expr] = ()) -> list[Expr]:
    """Every distinct node once, operands first; what is ``known`` is left out, and what only it needs."""
    seen: dict[Expr, None] = {}
    path: list[Expr] = []
    left = [iter(roots)]
    """Of the roots, and of the operands of each node of the path, those that are still to be visited."""
    while left:
        for x in left[-1]:
            if x in seen or x in known:
                continue
            if x.args:
                path.append(x)
                left.append(iter(x.args))
                break
            seen[x] = None
        else:
            left.pop()
            if path:
                seen[path.pop()] = None
    return list(seen)


def free_axes(x: Expr) -> frozenset[Axis]:
    """The loops that the value depends on; not those of folds inside it.

    >>> i, k = Axis(2, "i"), Axis(3, "k")
    >>> with consing():
    ...     body = load(0, "float32", (index(i), index(k)))
    ...     free_axes(fold("add", (k,), (const(0, "float32"),), (body,))) == {i}
    True
    """
    if x.free is None:
        stack = [x]
        while stack:
            node = stack[-1]
            waiting = [a for a in node.args if a.free is None]
            if waiting:
                stack += waiting
            else:
                node.free = _free(node)
                stack.pop()
    assert x.free is not None
    return x.free


def _free(x: Expr) -> frozenset[Axis]:
    if x.kind == "index":
        return frozenset((x.attr,))
    found = _NOTHING
    for a in x.args:
        assert a.free is not None
        if found is not a.free:
            found = found | a.free if found else a.free
    return found.difference(x.attr.axes) if x.kind == "fold" else found


_NOTHING: frozenset[Axis] = frozenset()


def rewriter(rule: Callable[[Expr], Expr | None]) -> Callable[[Expr], Expr]:
    """``rewrite`` by ``rule``, for many expressions that share parts."""
    memo: dict[Expr, Expr] = {}
    return lambda x: rewrite(x, rule, memo)


def remaker() -> Callable[[Expr], Expr]:
    """The function that makes an expression anew, for a table other than its own: what is equal is one object again."""
    made: dict[Expr, Expr] = {}

    def remade(root: Expr) -> Expr:
        for x in postorder(root):
            if x not in made:
                made[x] = make(x.kind, x.dtype, tuple([made[a] for a in x.args]), x.attr)
        return made[root]

    return remade


def folds_of(*roots: Expr) -> list[Expr]:
    """The distinct folds, inner ones first."""
    return [x for x in postorder(*roots) if x.kind == "fold"]


def pretty(x: Expr) -> str:
    """Text for people; long ones are cut, since shared subexpressions are written out."""
    text: dict[Expr, str] = {}
    for node in postorder(x):
        inner = ", ".join(text[a] for a in node.args)
        form = _FORMS.get(node.kind, "{kind}<{attr}>({inner})")
        full = form.format(kind=node.kind, attr=node.attr, inner=inner)
        text[node] = full if len(full) < 500 else full[:500] + "..."
    return text[x]


_FORMS = {"index": "{attr}", "const": "{attr}", "param": "p{attr}", "op": "{attr}({inner})"}
