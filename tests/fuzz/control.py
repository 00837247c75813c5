"""Control flow, calls and functions with own rules, as operations of random programs. They nest.

Loops run few steps (``plain.LONGEST``). Carries of floats go through ``tanh``, so that they stay bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fuzz.plain import LONGEST
from fuzz.pool import Context, Value
from fuzz.record import Symbol
from fuzz.source import Function, literal

Values = list[Value]


def written(
    c: Context,
    params: Sequence[Value],
    finish: Callable[[Context, Values], Any],
    closed: bool = True,
    pattern: Callable[..., Sequence[Any]] = lambda *names: names,
) -> Function:
    """A function of values of the types of ``params``, which returns what ``finish`` makes of its pool.

    ``pattern`` makes parameters of the symbols; ``closed`` functions may use what is outside.
    """
    outer = [v for v in c.pool if c.chance(0.4)] if closed else []
    with c.recorder.nested() as steps:
        given = [c.recorder.symbol(v.x) for v in params]
        own = [v.inside(x) for v, x in zip(params, given, strict=True)]
        inner = c.inner([*outer, *own])
        inner.grow(c.random.randint(1, 4))
        returned = literal(finish(inner, own))
    c.recorder.number += 1
    return Function(f"f{c.recorder.number}", tuple(map(literal, pattern(*given))), tuple(steps), returned)


def operands(c: Context, good: Callable[[Value], bool] = lambda v: True) -> Values:
    chosen = [c.choose(good) for _ in range(c.random.randint(1, 2))]
    return [v for v in chosen if v is not None]


def some(c: Context) -> Values:
    """What a function returns: one or two values, or one of them twice."""
    return [v for v in (c.choose() for _ in range(c.random.randint(1, 2))) if v is not None]


def symbols(values: Sequence[Value]) -> Any:
    """As one result or a tuple."""
    return values[0].x if len(values) == 1 else tuple(v.x for v in values)


def valued(found: Any, like: Sequence[Value]) -> Values:
    """Results of the same exactness and bounds as ``like``."""
    found = found if isinstance(found, tuple) else (found,)
    return [Value(x, v.exact, v.bound) for x, v in zip(found, like, strict=True)]


def fitted(c: Context, like: Value) -> Value:
    """A value of the type of ``like``, made of any other if there is none."""
    aval = like.x
    equal = c.choose(lambda v: v.x.shape == aval.shape and v.x.dtype == aval.dtype)
    if equal and c.chance(0.7):
        return equal
    other = c.choose(lambda v: v.kind == aval.dtype.kind and not narrows(v.x.dtype, aval.dtype))
    if other is None:
        return Value(c.np.zeros(aval.shape, aval.dtype.name), True, 0.0)
    total = c.np.broadcast_to(c.np.sum(other.x), aval.shape)
    return Value(total.astype(aval.dtype.name), False, other.bound * max(1, other.x.size))


def narrows(of: Any, to: Any) -> bool:
    """Whether a float loses digits, so that differences of it, by small steps, are no derivatives."""
    return of.kind == "f" and of.itemsize > to.itemsize


def carried(c: Context, like: Value) -> Value:
    """A value that a loop can carry."""
    v = fitted(c, like)
    return Value(c.np.tanh(v.x), False, 1.0) if v.kind == "f" else v


def carry(c: Context, good: Callable[[Value], bool] = lambda v: True) -> Values:
    """Initial values of a loop, with what is known of them in each step."""
    return [Value(v.x, v.kind != "f", max(1.0, v.bound)) for v in operands(c, lambda v: good(v) and v.x.size < 100)]


# --- branches ------------------------------------------------------------------------------------------------------


def predicate(c: Context) -> Symbol:
    v = c.choose(lambda v: v.kind in "bi")
    if v is None:
        return c.np.zeros((), "bool")
    if v.kind == "b":
        return v.x if not v.x.ndim else c.np.any(v.x)
    return c.np.sum(v.x) > c.random.randint(-1, 2)


def branches(c: Context, args: Values, number: int) -> tuple[list[Function], Values]:
    """Functions of ``args`` that give results of the same types, and what is known of these."""
    results: list[Values] = []

    def finish(inner: Context, own: Values) -> Any:
        results.append([fitted(inner, v) for v in results[0]] if results else some(inner))
        return symbols(results[-1])

    made = [written(c, args, finish) for _ in range(number)]
    worst = [Value(vs[0].x, all(v.exact for v in vs), max(v.bound for v in vs)) for vs in zip(*results, strict=True)]
    return made, worst


def cond(c: Context) -> Values:
    args, pred = operands(c), predicate(c)
    made, worst = branches(c, args, 2)
    return valued(c.lax.cond(pred, *made, *(v.x for v in args)), worst)


def switch(c: Context) -> Values | None:
    index = c.choose(lambda v: v.kind == "i" and not v.x.ndim)
    if index is None:
        return None
    args = operands(c)
    made, worst = branches(c, args, c.random.randint(1, 3))
    return valued(c.lax.switch(index.x, made, *(v.x for v in args)), worst)


# --- loops ---------------------------------------------------------------------------------------------------------


def sliced(c: Context, v: Value) -> Value:
    """What a body gets of ``v``; only its type matters."""
    return Value(c.recorder.module.ShapeDtypeStruct(v.x.shape[1:], v.x.dtype), v.exact, v.bound)


class Counter(Value):
    """The index of a loop, whose type is weak until it is given one."""

    def inside(self, x: Symbol) -> Value:
        return Value(x.recorder.record(f"jnp.asarray({x.name}, 'int32')"))


def counter(c: Context) -> Counter:
    return Counter(c.recorder.module.ShapeDtypeStruct((), np.dtype("int32")))


def integer(c: Context) -> Value | None:
    return c.choose(lambda v: v.x.dtype.name == "int32" and not v.x.ndim)


def scan(c: Context) -> Values:
    init = carry(c)
    x = c.choose(lambda v: v.x.ndim and v.x.shape[0] <= LONGEST) if c.chance(0.8) else None
    outs: Values = []

    def finish(inner: Context, own: Values) -> Any:
        new = [carried(inner, v) for v in init]
        outs.extend(some(inner) if c.chance(0.8) else [])
        return tuple(v.x for v in new), tuple(v.x for v in outs)

    n = len(init)
    pattern = lambda *xs: (xs[:n], xs[n] if x else ())
    body = written(c, [*init, *([sliced(c, x)] if x else [])], finish, pattern=pattern)
    options: dict[str, Any] = {"reverse": True} if c.chance(0.4) else {}
    options |= {"unroll": 2} if c.chance(0.2) else {}
    options |= {} if x else {"length": c.random.choice((0, 1, 3))}
    last, ys = c.lax.scan(body, tuple(v.x for v in init), x.x if x else None, **options)
    return [*valued(last, init), *valued(ys, outs)]


def while_loop(c: Context) -> Values:
    """Counts to a number that depends on values, if there is one."""
    init, bound = carry(c), integer(c)
    stop = bound.x % LONGEST if bound else c.random.randint(0, 3)
    finish = lambda inner, own: (own[0].x + 1, *(carried(inner, v).x for v in init))
    pattern = lambda *xs: (xs,)
    body = written(c, [counter(c), *init], finish, pattern=pattern)
    c.recorder.number += 1
    first = [c.recorder.name() for _ in range(1 + len(init))]
    test = Function(f"f{c.recorder.number}", (f"({', '.join(first)},)",), (), f"{first[0]} < {literal(stop)}")
    count, *last = c.lax.while_loop(test, body, (c.np.zeros((), "int32"), *(v.x for v in init)))
    return [Value(count), *valued(tuple(last), init)]


def fori_loop(c: Context) -> Values:
    init, bound = carry(c), integer(c)
    traced = bound is not None and c.chance(0.5)
    stop = bound.x % LONGEST if traced else c.random.randint(0, 3)
    finish = lambda inner, own: symbols([carried(inner, v) for v in init])
    pattern = lambda i, *xs: (i, xs[0] if len(xs) == 1 else xs)
    body = written(c, [counter(c), *init], finish, pattern=pattern)
    return valued(c.lax.fori_loop(0, stop, body, symbols(init)), init)


def mapping(c: Context) -> Values | None:
    """``lax.map``, or ``vmap`` of one argument or two."""
    xs = operands(c, lambda v: v.x.ndim and 0 < v.x.shape[0] <= LONGEST)
    if not xs:
        return None
    outs: Values = []
    if c.chance(0.4):
        body = written(c, [sliced(c, xs[0])], returning(outs))
        return valued(c.lax.map(body, xs[0].x), outs)
    axes = [0 if v is xs[0] or (v.x.shape[0] == xs[0].x.shape[0] and c.chance(0.7)) else None for v in xs]
    body = written(c, [v if a is None else sliced(c, v) for v, a in zip(xs, axes, strict=True)], returning(outs))
    return valued(c.recorder.call(f"jax.vmap({body.name}, {axes})", [v.x for v in xs], body), outs)


def associative(c: Context) -> Value | None:
    v = c.choose(lambda v: v.x.ndim and 0 < v.x.shape[0] <= LONGEST and v.kind in "fi")
    if v is None:
        return None
    text = f"lax.associative_scan(jnp.add, {v.x.name}, reverse={c.chance(0.5)})"
    return Value(c.recorder.record(text), False, v.bound * LONGEST)


# --- calls ---------------------------------------------------------------------------------------------------------


def returning(outs: Values) -> Callable[[Context, Values], Any]:
    """What finishes a function with any of its values, of which ``outs`` gets to know."""

    def finish(inner: Context, own: Values) -> Any:
        outs.extend(some(inner))
        return symbols(outs)

    return finish


def call(c: Context) -> Values:
    args, outs = operands(c), list[Value]()
    body = written(c, args, returning(outs))
    return valued(
        c.recorder.call(f"{c.pick('jax.jit', 'jax.checkpoint')}({body.name})", [v.x for v in args], body), outs
    )


def own_rule(c: Context) -> Values:
    """A ``custom_jvp`` or ``custom_vjp``; the latter must not close over what is differentiated."""
    rule, args, outs = c.pick("own_jvp", "own_vjp"), operands(c), list[Value]()
    body = written(c, args, returning(outs), closed=False)
    return valued(c.recorder.call(f"{rule}({body.name})", [v.x for v in args], body), outs)


CONTROL = (cond, switch, scan, scan, while_loop, fori_loop, mapping, associative, call, call, own_rule, own_rule)


def control(c: Context) -> Values | Value | None:
    return c.random.choice(CONTROL)(c) if c.depth > 0 and c.pool else None
