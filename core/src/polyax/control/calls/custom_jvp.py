"""``custom_jvp``: functions whose derivative the user gives as a rule for pushing tangents forward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.calls.custom import (
    CustomFunction,
    FewerResults,
    MappedRule,
    OwnRules,
    SymbolicZero,
    UserRule,
    array_given,
    check_results,
    own_lines,
    refuse_closed_over,
    unflatten,
    with_types,
)
from polyax.control.inner.lists import kept, nonzeros
from polyax.ir.aval import ShapedArray, aval_of, same_type
from polyax.ir.dtypes import float0
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive
from polyax.ops.convert import stop_gradient
from polyax.ops.zeros import add_tangents, instantiate
from polyax.trace.flat import Flat, name_of
from polyax.trace.symbolic import Zero
from polyax.trace.tracer import Tracer
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_map, tree_unflatten
from polyax.transforms.vmap import batch_flat, match_axis

custom_jvp_call_p = Primitive("custom_jvp_call", higher_order=True)
"""``custom_jvp_call[call_jaxpr jvp name num_consts]``: ``call_jaxpr`` where it was recorded, else ``fun``; ``jvp`` maps
lists of primals and tangents, some of them ``Zero``, to lists."""


class custom_jvp(CustomFunction):
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

    kind = "custom_jvp"
    jvp: Callable[..., Any] | None = None
    symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Sets the rule: ``jvp(*nondiff, primals, tangents) -> (primals_out, tangents_out)``.

        With ``symbolic_zeros`` tangents that are zero come as ``SymbolicZero`` instead of arrays.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets a rule for each argument: ``jvp(tangent, primal_out, *primals)``, or None where it is zero."""
        if not self.signature.plain:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
            out = self(*primals)
            total = tree_map(Zero.of, out)
            for t, rule in zip(tangents, jvps, strict=False):
                total = tree_map(add_tangents, total, rule(t, out, *primals)) if rule else total
            return out, tree_map(instantiate, total)

        self.defjvp(jvp)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise AttributeError(f"No JVP defined for custom_jvp function {self.__name__} using defjvp.")
        call = self.split(args, kwargs)
        call.static = tuple([(n, kind, tree_map(_constant, x)) for n, kind, x in call.static])
        flat = call.flat()
        rule = _Rule(self, flat, [x for _, _, x in call.static])
        params = {"fun": flat, "jvp": rule, "call_jaxpr": None, "num_consts": 0, "name": self.__name__}
        return unflatten(flat, rule, custom_jvp_call_p.bind(*call.leaves, **params))


def _constant(x: Any) -> Any:
    """Arguments that aren't differentiated are constants to all derivatives."""
    return stop_gradient(x) if isinstance(x, Tracer) else x


class _Rule(UserRule):
    """A user's rule on flat lists; checks what it returns."""

    def __init__(self, owner: custom_jvp, flat: Flat, nondiff: Sequence[Any]) -> None:
        self.owner = owner
        self.flat = flat
        self.nondiff = nondiff
        self.out_tree: PyTreeDef | None = None

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        owner, tree = self.owner, self.flat.in_tree
        assert owner.jvp is not None
        symbolic = owner.symbolic_zeros
        given = [SymbolicZero(t.aval) if symbolic and type(t) is Zero else array_given(t) for t in tangents]
        (xs, _), (ts, _) = tree_unflatten(tree, self.arrays(primals)), tree_unflatten(tree, given)
        with own_lines(owner.jvp):
            pair = owner.jvp(*self.nondiff, xs, ts)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"{self._what()} must produce a pair (list or tuple of length two) representing primal and tangent "
                f"outputs, but got {pair}."
            )
        return self._flattened(*pair)

    def _flattened(self, out: Any, dot: Any) -> tuple[list[Any], list[Any]]:
        outs, tree = tree_flatten(out)
        dots, dot_tree = tree_flatten(dot)
        if tree != dot_tree:
            raise TypeError(
                f"{self._what()} must produce primal and tangent outputs with equal container (pytree) structures, "
                f"but got {tree} and {dot_tree} respectively."
            )
        if self.flat.out_tree is not None and tree != self.flat.out_tree:
            raise TypeError(
                f"{_must(self.owner, 'of the same container/pytree structure')} had container/pytree structure:\n"
                f"    {with_types(tree, [aval_of(x) for x in outs])}\nwhile the {_function(self.owner)} had output "
                f"container/pytree structure:\n    {with_types(self.flat.out_tree, self.wanted)}."
            )
        self.out_tree = tree
        try:
            return outs, [self._tangent(x, t) for x, t in zip(outs, dots, strict=True)]
        except TypeError:
            _check(self.owner, outs, self.wanted)  # of what is wrong, what gives the results is told first
            raise

    def _what(self) -> str:
        return _rule(self.owner)

    def _tangent(self, out: Any, dot: Any) -> Any:
        wanted = aval_of(out).to_tangent_aval()
        if type(dot) in (SymbolicZero, Zero):
            return Zero(wanted)
        got = aval_of(dot)
        if not same_type(got, wanted):
            raise TypeError(
                "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes. "
                f"Expected {wanted.str_short()} (tangent type of {aval_of(out).str_short()}) but got "
                f"{got.str_short()}. {self._what()} produced them."
            )
        return Zero(wanted) if wanted.dtype == float0 else dot


def _check(owner: custom_jvp, outs: Sequence[Any], wanted: Sequence[ShapedArray] | None) -> None:
    """Raises TypeError unless results have the types of those of the function, if these are known."""
    check_results(_must(owner, "with leaves of the same shape/dtype"), _function(owner), outs, wanted)


def _must(owner: custom_jvp, particular: str) -> str:
    return (
        f"{_rule(owner)} must produce a pair (list or tuple of length two) where the first element represents the "
        f"primal output (equal in value to the output of the {_function(owner)}, and in particular {particular}), but "
        "instead the JVP rule output's first element"
    )


def _rule(owner: custom_jvp) -> str:
    assert owner.jvp is not None
    return f"Custom JVP rule {name_of(owner.jvp)} for function {owner.__name__}"


def _function(owner: custom_jvp) -> str:
    return f"custom_jvp-decorated function {owner.__name__}"


class _MappedRule(MappedRule):
    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        nonzero = nonzeros(tangents)
        zeros: dict[int, Zero] = {}

        def both(*xs: Any) -> list[Any]:
            values, given = xs[: len(primals)], iter(xs[len(primals) :])
            dots = [next(given) if nz else Zero.of(x) for nz, x in zip(nonzero, values, strict=True)]
            outs, out_dots = self.rule(values, dots)
            zeros.update((n, t) for n, t in enumerate(out_dots) if type(t) is Zero)
            return [*outs, *(outs[n] if n in zeros else t for n, t in enumerate(out_dots))]

        args, dims = [*primals, *kept(nonzero, tangents)], [*self.dims, *kept(nonzero, self.dims)]
        results, found = batch_flat(both, self.axis, args, dims)
        n = len(results) // 2
        wanted = [None if p is None and t is None else 0 for p, t in zip(found[:n], found[n:], strict=True)]
        self.out_dims[:] = wanted
        moved = [match_axis(self.axis, d, w, x) for x, d, w in zip(results, found, wanted * 2, strict=True)]
        return moved[:n], [Zero.of(moved[k]) if k in zeros else t for k, t in enumerate(moved[n:])]


class _FewerResults(FewerResults):
    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        outs, dots = self.rule(primals, tangents)
        return kept(self.used, outs), kept(self.used, dots)


class _CustomJVP(OwnRules):
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        num_consts = params["num_consts"]
        refuse_closed_over("custom_jvp", tangents[:num_consts])
        outs, dots = params["jvp"](primals[num_consts:], tangents[num_consts:])
        program = params["call_jaxpr"]
        _check(params["jvp"].owner, outs, None if program is None else program.out_avals)
        return outs, dots

    def pretty(self, *, name: str, call_jaxpr: ClosedJaxpr, jvp: Any, **_: Any) -> dict[str, Any]:
        owner, rule = jvp.owner, name_of(jvp.owner.jvp)
        return {"name": name, "call_jaxpr": call_jaxpr, "jvp": rule, "symbolic_zeros": owner.symbolic_zeros}


_CustomJVP(custom_jvp_call_p, "jvp", _MappedRule, _FewerResults).install(
    "impl", "record", "abstract_eval", "jvp", "batch", "transpose", "dce", "sub_jaxprs", "pretty"
)
custom_jvp_call_p.never("partial_eval", "its rule differentiates it as a whole")
