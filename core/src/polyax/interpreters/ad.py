"""``polyax.interpreters.ad``: derivative rules of primitives, registered as in JAX.

A JVP rule is ``(primals, tangents, **params) -> (out, out_tangent)``, a transpose rule ``(cotangent, *args, **params)
-> [cotangent or None, ...]``; tangents and cotangents may be ``Zero``, and arguments to solve for are
``UndefinedPrimal``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax import late
from polyax.extend.primitive import listed
from polyax.interpreters.tables import Rule, RuleTable, pair, single
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import Primitive
from polyax.ops.basis import add_p as add_jaxvals_p
from polyax.ops.zeros import add_tangents as _add_tangents
from polyax.ops.zeros import instantiate, zeros_like_aval
from polyax.trace.symbolic import UndefPrimal as UndefinedPrimal
from polyax.trace.symbolic import Zero, is_undef
from polyax.transforms.jvp import JVPTrace, JVPTracer

__all__ = [
    "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p", "add_tangents", "defbilinear",
    "defjvp", "defjvp2", "deflinear", "deflinear2", "get_primitive_transpose", "instantiate_zeros",
    "is_undefined_primal", "primitive_jvps", "primitive_transposes", "zeros_like_aval",
]  # fmt: skip


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents, each of which may be ``Zero``."""
    return _add_tangents(x, y)


def add_jaxvals(x: Any, y: Any) -> Any:
    """The sum of two values of one type."""
    return add_jaxvals_p.bind1(x, y)


def instantiate_zeros(tangent: Any) -> Any:
    """A tangent as an array, if it is ``Zero``."""
    return instantiate(tangent)


is_undefined_primal = is_undef


def _jvp(primitive: Primitive, rule: Rule) -> Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        outs, out_tangents = pair(primitive, "JVP", rule(tuple(primals), tuple(tangents), **params))
        outs = listed(primitive, outs, "JVP")
        given = listed(primitive, out_tangents, "JVP")
        if len(outs) != len(given):
            raise TypeError(f"The JVP rule of '{primitive}' gave {len(outs)} results and {len(given)} tangents")
        return outs, [_checked(primitive, "JVP", t, aval_of(y)) for t, y in zip(given, outs, strict=True)]

    return jvp


def _transpose(primitive: Primitive, rule: Rule) -> Rule:
    def transpose(cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
        results = rule(list(cts) if primitive.multiple_results else cts[0], *args, **params)
        if not isinstance(results, (tuple, list)) or len(results) != len(args):
            raise TypeError(
                f"The transpose rule of '{primitive}' must return a list of {len(args)} cotangents, one for each "
                f"argument (None for those that are known), but returned {results!r}"
            )
        return [
            _checked(primitive, "transpose", ct, x.aval) if is_undef(x) and ct is not None else ct
            for ct, x in zip(results, args, strict=True)
        ]

    return transpose


def _checked(primitive: Primitive, what: str, t: Any, primal: ShapedArray) -> Any:
    """A tangent or cotangent, which must be of the type that belongs to its primal."""
    got, want = aval_of(t), primal.to_tangent_aval()
    if got.shape != want.shape or (got.dtype != want.dtype and not got.weak_type):
        raise TypeError(
            f"The {what} rule of '{primitive}' must give a {'tangent' if what == 'JVP' else 'cotangent'} of type "
            f"{want} for a value of type {primal}, but gave {got}"
        )
    return t


def _shown_jvp(primitive: Primitive, rule: Rule) -> Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        outs, dots = rule(primals, tangents, **params)
        return single(primitive, outs), single(primitive, dots)

    return jvp


def _shown_transpose(primitive: Primitive, rule: Rule) -> Rule:
    return lambda ct, *args, **params: rule(ct if primitive.multiple_results else [ct], *args, **params)


primitive_jvps = RuleTable("jvp", _jvp, _shown_jvp)
primitive_transposes = RuleTable("transpose", _transpose, _shown_transpose)


def get_primitive_transpose(p: Any) -> Rule:
    """The transpose rule of a primitive.

    Raises:
      NotImplementedError: it has none; the text says why.
    """
    p.rule("transpose")
    return primitive_transposes[p]


def defjvp(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """One rule for each argument: ``rule(tangent, *primals, **params) -> tangent of the result``; None for those that
    the result is flat in."""
    defjvp2(primitive, *(rule and _without_result(rule) for rule in jvprules))


def _without_result(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda t, y, *primals, **params: rule(t, *primals, **params)


def defjvp2(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """The same with ``rule(tangent, result, *primals, **params)``."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        if len(jvprules) != len(primals):
            raise TypeError(f"'{primitive}' has {len(primals)} arguments and {len(jvprules)} rules for its derivative")
        y = primitive.bind(*primals, **params)
        total: Any = Zero.of(y)
        for rule, t in zip(jvprules, tangents, strict=True):
            if rule is not None and type(t) is not Zero:
                total = add_tangents(total, rule(t, y, *primals, **params))
        return y, total

    primitive_jvps[primitive] = jvp


def deflinear(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """A primitive that is linear in all its arguments: ``transpose_rule(cotangent, **params)``."""
    deflinear2(primitive, lambda ct, *_, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """A primitive that is linear in all its arguments: ``transpose_rule(cotangent, *args, **params)``."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        return primitive.bind(*primals, **params), primitive.bind(*map(instantiate, tangents), **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose_rule


def defbilinear(prim: Primitive, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]) -> None:
    """A primitive that is linear in each of its two arguments: ``rule(cotangent, x, y, **params)``."""
    defjvp(
        prim,
        lambda t, x, y, **params: prim.bind(t, y, **params),
        lambda t, x, y, **params: prim.bind(x, t, **params),
    )

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> list[Any]:
        if is_undef(x) == is_undef(y):
            raise NotImplementedError(f"'{prim}' is bilinear; it can be transposed in one argument at a time")
        if is_undef(x):
            return [lhs_rule(ct, x, y, **params), None]
        return [None, rhs_rule(ct, x, y, **params)]

    primitive_transposes[prim] = transpose


def __getattr__(name: str) -> Any:
    return late.load(__name__, {}, name)
