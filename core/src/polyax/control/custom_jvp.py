"""``custom_jvp``: functions whose derivative the user gives as a rule for pushing tangents forward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.custom import Signature, SymbolicZero, refuse_closed_over
from polyax.control.lists import kept, merged, nonzeros
from polyax.control.programs import hoisted, run
from polyax.ir.aval import ShapedArray, aval_of, same_type
from polyax.ir.dtypes import float0
from polyax.ir.effects import Effects
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.zeros import add_tangents, instantiate
from polyax.trace.flat import Flat, name_of
from polyax.trace.stage import DynamicJaxprTrace, trace_to_jaxpr
from polyax.trace.symbolic import Zero, is_undef
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten
from polyax.transforms.transpose import transpose_jaxpr
from polyax.transforms.vmap import Axis, batch_flat, match_axis

custom_jvp_call_p = Primitive("custom_jvp_call", higher_order=True)
""
"""``custom_jvp_call[call_jaxpr jvp name num_consts]``: ``call_jaxpr`` where it was recorded, else ``fun``; ``jvp`` maps
lists of primals and tangents, some of them ``Zero``, to lists."""

FlatJvp = Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]


class custom_jvp:
    """A function with a derivative rule of its own.

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums, nondiff_argnames: arguments that aren't differentiated; the rule gets them first.

    >>> @custom_jvp
    ... def f(x):
    ...     return 3 * x
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     return f(*primals), 10 * tangents[0]
    >>> import polyax
    >>> polyax.grad(f)(1.0).item()
    10.0
    """

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ) -> None:
        self.fun = fun
        self.nondiff_argnums = tuple(nondiff_argnums)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False
        self._signature = Signature(fun, nondiff_argnums, nondiff_argnames)
        self.__wrapped__ = fun
        self.__name__ = name_of(fun)
        self.__doc__ = fun.__doc__
        self.__module__ = fun.__module__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else lambda *args, **kwargs: self(instance, *args, **kwargs)

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Sets the rule: ``jvp(*nondiff, primals, tangents) -> (primals_out, tangents_out)``.

        With ``symbolic_zeros`` tangents that are zero come as ``SymbolicZero`` instead of arrays.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets a rule for each argument: ``jvp(tangent, primal_out, *primals)``, or None where it is zero."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
            out = self(*primals)
            terms = [rule(t, out, *primals) for rule, t in zip(jvps, tangents, strict=True) if rule]
            total: Any = Zero.of(out)
            for t in terms:
                total = add_tangents(total, t)
            return out, instantiate(total)

        self.defjvp(jvp)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise AttributeError(f"No JVP defined for custom_jvp function {self.__name__} using defjvp.")
        flat, leaves, nondiff = self._signature.flat(self._signature.positional(args, kwargs))
        rule = _Rule(self, flat, nondiff)
        outs = custom_jvp_call_p.bind(*leaves, fun=flat, jvp=rule, call_jaxpr=None, num_consts=0, name=self.__name__)
        return tree_unflatten(flat.out_tree or rule.out_tree, outs)


class _Rule:
    """A user's rule on flat lists; checks what it returns."""

    def __init__(self, owner: custom_jvp, flat: Flat, nondiff: Sequence[Any]) -> None:
        self.owner = owner
        self.flat = flat
        self.nondiff = nondiff
        self.out_tree: PyTreeDef | None = None

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        owner, (tree, _) = self.owner, (self.flat.in_tree, None)
        assert owner.jvp is not None
        given = [SymbolicZero(t.aval) if owner.symbolic_zeros and type(t) is Zero else instantiate(t) for t in tangents]
        (xs, _), (ts, _) = tree_unflatten(tree, primals), tree_unflatten(tree, given)
        pair = owner.jvp(*self.nondiff, xs, ts)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"{self._what()} must produce a pair (list or tuple of length two) representing primal and tangent "
                f"outputs, but got {pair}."
            )
        outs, self.out_tree = tree_flatten(pair[0])
        dots, dot_tree = tree_flatten(pair[1], is_leaf=lambda x: isinstance(x, SymbolicZero))
        if self.out_tree != dot_tree:
            raise TypeError(
                f"{self._what()} must produce primal and tangent outputs with equal container (pytree) structures, "
                f"but got {self.out_tree} and {dot_tree} respectively."
            )
        return outs, [self._tangent(x, t) for x, t in zip(outs, dots, strict=True)]

    def _what(self) -> str:
        assert self.owner.jvp is not None
        return f"Custom JVP rule {name_of(self.owner.jvp)} for function {self.owner.__name__}"

    def _tangent(self, out: Any, dot: Any) -> Any:
        wanted = aval_of(out).to_tangent_aval()
        if type(dot) in (SymbolicZero, Zero) or wanted.dtype == float0:
            return Zero(wanted)
        got = aval_of(dot)
        if not same_type(got, wanted):
            raise TypeError(
                f"{self._what()} must produce primal and tangent outputs with corresponding shapes and dtypes. "
                f"Expected {wanted} (tangent type of {aval_of(out)}) but got {got}."
            )
        return dot


def _function(fun: Callable[..., Any] | None, call_jaxpr: ClosedJaxpr | None) -> Callable[..., list[Any]]:
    return fun if call_jaxpr is None else lambda *args: run(call_jaxpr, args)  # pyright: ignore[reportReturnType]


@def_rule(custom_jvp_call_p, "impl")
def _impl(*args: Any, fun: Any, call_jaxpr: ClosedJaxpr | None, **_: Any) -> list[Any]:
    return _function(fun, call_jaxpr)(*args)


@def_rule(custom_jvp_call_p, "stage")
def _stage(trace: DynamicJaxprTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The function becomes a program, whose constants are arguments."""
    if params["call_jaxpr"] is not None:
        return trace.record(custom_jvp_call_p, args, params)
    closed = trace_to_jaxpr(params["fun"], [aval_of(x) for x in args], name=params["name"])
    program, consts = hoisted(closed)
    recorded = {**params, "fun": None, "call_jaxpr": program, "num_consts": len(consts)}
    return trace.record(custom_jvp_call_p, [*consts, *args], recorded)


@def_rule(custom_jvp_call_p, "abstract_eval")
def _abstract_eval(*_: ShapedArray, call_jaxpr: ClosedJaxpr, **__: Any) -> tuple[list[ShapedArray], Effects]:
    return call_jaxpr.out_avals, call_jaxpr.effects


@def_rule(custom_jvp_call_p, "jvp")
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jvp: FlatJvp, num_consts: int, **_: Any) -> Any:
    refuse_closed_over("custom_jvp", tangents[:num_consts])
    return jvp(primals[num_consts:], tangents[num_consts:])


@def_rule(custom_jvp_call_p, "batch")
def _batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    fun: Any,
    call_jaxpr: ClosedJaxpr | None,
    jvp: FlatJvp,
    num_consts: int,
    name: str,
) -> Any:
    """The function and its rule are mapped both; all results are mapped at dimension 0."""

    def mapped(*xs: Any) -> list[Any]:
        return at_front(axis, *batch_flat(_function(fun, call_jaxpr), axis, xs, dims))

    def mapped_rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        own = dims[num_consts:]
        return mapped_jvp(jvp, axis, primals, tangents, own)

    outs = custom_jvp_call_p.bind(*args, fun=mapped, call_jaxpr=None, jvp=mapped_rule, num_consts=num_consts, name=name)
    return outs, [0] * len(outs)


def at_front(axis: Axis, outs: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Mapped results, each with its mapped dimension first."""
    return [match_axis(axis.size, d, 0, x) for x, d in zip(outs, dims, strict=True)]


def mapped_jvp(
    jvp: FlatJvp, axis: Axis, primals: Sequence[Any], tangents: Sequence[Any], dims: Sequence[int | None]
) -> tuple[list[Any], list[Any]]:
    nonzero = nonzeros(tangents)
    out_nonzero: list[bool] = []

    def both(*xs: Any) -> list[Any]:
        values, given = xs[: len(primals)], iter(xs[len(primals) :])
        dots = [next(given) if nz else Zero.of(x) for nz, x in zip(nonzero, values, strict=True)]
        outs, out_dots = jvp(values, dots)
        out_nonzero.extend(nonzeros(out_dots))
        return [*outs, *(t for t in out_dots if type(t) is not Zero)]

    outs = at_front(axis, *batch_flat(both, axis, [*primals, *kept(nonzero, tangents)], [*dims, *kept(nonzero, dims)]))
    n = len(out_nonzero)
    zeros = [Zero.of(x) for x, nz in zip(outs[:n], out_nonzero, strict=True) if not nz]
    return outs[:n], merged(out_nonzero, outs[n:], zeros)


@def_rule(custom_jvp_call_p, "transpose")
def _transpose(cts: Sequence[Any], *args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    """A linear function needs no rule: its program is transposed."""
    linear, nonzero = tuple(map(is_undef, args)), nonzeros(cts)
    backward, nonzero_out = transpose_jaxpr(call_jaxpr, linear, nonzero)
    outs = iter(run(backward, [x for x in args if not is_undef(x)] + kept(nonzero, cts)))
    wanted = iter(nonzero_out)
    return [(next(outs) if next(wanted) else Zero(x.aval)) if is_undef(x) else None for x in args]


custom_jvp_call_p.never("partial_eval", "its rule differentiates it as a whole")
custom_jvp_call_p.never("dce", "its rule gives all results at once")


@def_rule(custom_jvp_call_p, "sub_jaxprs")
def _sub_jaxprs(*, call_jaxpr: ClosedJaxpr, **_: Any) -> list[ClosedJaxpr]:
    return [call_jaxpr]


@def_rule(custom_jvp_call_p, "pretty")
def _pretty(*, name: str, call_jaxpr: ClosedJaxpr, jvp: Any, num_consts: int, **_: Any) -> dict[str, Any]:
    owner = getattr(jvp, "owner", None)
    return {
        "name": name,
        "call_jaxpr": call_jaxpr,
        "jvp": name_of(owner.jvp if owner else jvp),
        "num_consts": num_consts,
    }
