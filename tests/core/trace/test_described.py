"""What programs tell of the functions that they were traced from, as tools written for JAX ask for it."""

from __future__ import annotations

import functools
import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax

XS = np.arange(3, dtype=np.float32)


def f(x: Any, y: Any = 2.0, *, z: Any = 3.0) -> Any:
    return {"a": x, "b": (y, z)}


def rest(*args: Any, **kw: Any) -> Any:
    return args[0], kw["k"], None


class _Callable:
    def __call__(self, x: Any) -> Any:
        return [x]

    def method(self, x: Any) -> Any:
        return x


PATHS = ("result['a']", "result['b'][0]", "result['b'][1]")
TOLD: dict[str, Any] = {
    "plain": (lambda: polyax.make_jaxpr(f)(1.0, 2.0, z=3.0), "f", ("x", "y", "z"), PATHS),
    "trees": (lambda: polyax.make_jaxpr(f)({"u": 1.0}, 2.0), "f", ("x['u']", "y"), ("result['a']['u']", *PATHS[1:])),
    "rest": (
        lambda: polyax.make_jaxpr(rest)(1.0, 2.0, k=3.0),
        "rest",
        ("args[0]", "args[1]", "kw['k']"),
        ("result[0]", "result[1]"),
    ),
    "partial": (lambda: polyax.make_jaxpr(functools.partial(f, 1.0))(2.0), "f", ("y",), PATHS),
    "static": (lambda: polyax.make_jaxpr(f, static_argnums=0)(1.0, 2.0), "f", ("y",), PATHS),
    "method": (lambda: polyax.make_jaxpr(_Callable().method)(1.0), "method", ("x",), ("result",)),
    "no arguments": (lambda: polyax.make_jaxpr(lambda: 1)(), "<lambda>", (), ("result",)),
}


@pytest.mark.parametrize("name", TOLD)
def test_names_of_arguments_and_results(name: str) -> None:
    closed, fun, names, paths = TOLD[name][0](), *TOLD[name][1:]
    for told in (closed.debug_info, closed.jaxpr.debug_info, closed.jaxpr.replace(eqns=closed.eqns).debug_info):
        assert (told.traced_for, told.func_name, told.func_filename) == ("jit", fun, __file__)
        assert (told.arg_names, told.result_paths) == (names, paths)


def test_where_it_is() -> None:
    told = polyax.make_jaxpr(f)(1.0).jaxpr.debug_info
    assert told.func_src_info == f"f at {__file__}:{f.__code__.co_firstlineno}"
    assert told.func_lineno == f.__code__.co_firstlineno
    unknown = polyax.make_jaxpr(_Callable())(1.0).jaxpr.debug_info
    assert (unknown.func_src_info, unknown.func_lineno) == ("<unknown>", None)
    assert (unknown.arg_names, unknown.result_paths) == (("x",), ("result[0]",))


def _of(fun: Any, *args: Any) -> list[Any]:
    """Of the programs in the last equation."""
    params = polyax.make_jaxpr(fun)(*args).eqns[-1].params.values()
    programs = [p for x in params for p in (x if isinstance(x, tuple) else (x,)) if hasattr(p, "debug_info")]
    return [(d.traced_for, d.arg_names, d.result_paths) for d in (p.debug_info for p in programs)]


def test_inner_programs_tell_what_they_were_traced_for() -> None:
    result = ("result",)
    assert _of(polyax.jit(f), 1.0) == [("jit", ("x",), PATHS)]
    assert _of(polyax.checkpoint(lambda x: x * 2), 1.0) == [("checkpoint / remat", ("x",), result)]
    step = lambda c, x: (c * 2, x["a"] + c)
    assert _of(lambda x: lax.scan(step, 0.0, x), {"a": XS}) == [
        ("scan", ("c", "x['a']"), ("result[0]", "result[1]")),
    ]
    assert _of(lambda x: lax.scan(lambda c, x: (c + x * XS[0], None), 0.0, x), XS)[0][1] == ("c", "x")
    assert _of(lambda x: lax.cond(x > 0, lambda x: x * 2, lambda y: y * 3, x), 1.0) == [
        ("cond", ("y",), result),
        ("cond", ("x",), result),
    ]
    assert _of(lambda x: lax.while_loop(lambda c: c < 3, lambda d: d * 2, x), 1.0) == [
        ("while_cond", ("c",), result),
        ("while_body", ("d",), result),
    ]


def test_derived_programs_know_the_function_alone() -> None:
    inner = polyax.make_jaxpr(polyax.grad(polyax.jit(lambda a: a * a * a)))(1.0).eqns[-1].params["jaxpr"]
    told = inner.debug_info
    assert (told.traced_for, told.func_name, told.arg_names, told.result_paths) == ("jit", "<lambda>", None, None)


def test_programs_keep_no_function_alive() -> None:
    def made() -> Any:
        fun = lambda x: x * 2
        return weakref.ref(fun), polyax.make_jaxpr(fun)(1.0)

    fun, closed = made()
    gc.collect()
    assert fun() is None
    assert closed.debug_info.arg_names == ("x",)
    assert pickle.loads(pickle.dumps(closed.jaxpr.debug_name)) == "<lambda>"
