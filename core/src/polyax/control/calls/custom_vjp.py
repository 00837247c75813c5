"""``custom_vjp``: functions whose derivative the user gives as a pair of functions, forward and backward.

Differentiating the call runs the forward function, and puts a linear equation into the program of tangents, which
only knows how to run backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.calls.custom import (
    CustomFunction,
    FewerResults,
    MappedRule,
    OwnRules,
    UserRule,
    at_front,
    check_results,
    function_of,
    own_lines,
    refuse_closed_over,
    unflatten,
    where_mapped,
    with_types,
)
from polyax.control.calls.custom_lin import Backward, UserBackward, custom_lin_p, mapped_backward
from polyax.control.calls.rematopt import forward_or_plain
from polyax.control.inner.lists import kept, merged, nonzeros
from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.ir.errors import UnexpectedTracerError
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive
from polyax.ir.refs import is_ref, met
from polyax.trace.calls import Static, completed
from polyax.trace.flat import Flat, check_callable, name_of
from polyax.trace.symbolic import Zero
from polyax.trace.tracer import Tracer
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_leaves, tree_map, tree_unflatten
from polyax.transforms.vmap import batch_flat

custom_vjp_call_p = Primitive("custom_vjp_call", higher_order=True)
"""``custom_vjp_call[call_jaxpr rules name num_consts]``: ``call_jaxpr`` where it was recorded, else ``fun``;
``rules.forward`` gives flat results, residuals and ``backward``, which maps residuals and cotangents to cotangents."""


class custom_vjp(CustomFunction):
    """A function with rules of its own for reverse-mode differentiation.

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums, nondiff_argnames: arguments that aren't differentiated; ``bwd`` gets them first.

    >>> @custom_vjp
    ... def f(x):
    ...     return 3 * x
    >>> f.defvjp(lambda x: (f(x), None), lambda residuals, ct: (10 * ct,))
    >>> import polyax
    >>> polyax.grad(f)(1.0).item()
    10.0
    """

    kind = "custom_vjp"
    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None
    symbolic_zeros = False
    optimize_remat = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Sets the rules.

        Args:
          fwd: takes the arguments of the function and gives a pair of its result and residuals.
          bwd: ``bwd(*nondiff, residuals, cotangents)`` gives a tuple of a cotangent for each argument; None is zero.
          symbolic_zeros: ``fwd`` gets arguments with ``.value`` and ``.perturbed``; ``bwd`` gets ``SymbolicZero`` for
            cotangents that are zero.
          optimize_remat: where ``checkpoint`` needs the result but not the residuals, the function runs instead of
            ``fwd``; not together with ``symbolic_zeros``.
        """
        check_callable(fwd)
        check_callable(bwd)
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError("custom_vjp: symbolic_zeros and optimize_remat can't be combined")
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros, self.optimize_remat = symbolic_zeros, optimize_remat

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(f"No VJP defined for custom_vjp function {self.__name__} using defvjp.")
        call = self.split(args, kwargs)
        self._refuse_tracers([x for _, _, x in call.static])
        flat = call.flat()
        rules = _Rules(self, flat, call.static)
        params = {"fun": flat, "rules": rules, "call_jaxpr": None, "num_consts": 0, "name": self.__name__}
        if met.any:
            call.refuse_aliases()
        outs = custom_vjp_call_p.bind(*call.leaves, **params)
        _refuse_refs("primal", self.__name__, outs, " that was not an argument.")
        return unflatten(flat, rules, outs)

    def _refuse_tracers(self, nondiff: Sequence[Any]) -> None:
        for x in tree_leaves(nondiff):
            if isinstance(x, Tracer):
                raise UnexpectedTracerError(
                    f"Found a JAX Tracer object passed as an argument to a custom_vjp function in a position indicated "
                    f"by nondiff_argnums as non-differentiable: {x.aval.str_short()}, to {self.__name__}. Tracers "
                    "cannot be passed as non-differentiable arguments to custom_vjp functions; instead, "
                    "nondiff_argnums should only be used for arguments that can't be or contain JAX tracers, e.g. "
                    "function-valued arguments. Array-valued arguments should be differentiated, with None as their "
                    "cotangent."
                )


def _refuse_refs(kind: str, name: str, outs: Sequence[Any], why: str, but: Sequence[Any] = ()) -> None:
    """Raises ValueError if a reference is among ``outs``, but for those of ``but``."""
    for x in outs if met.any else ():
        if is_ref(x) and not any(x is y for y in but):
            raise ValueError(
                f"custom_vjp {kind} function {name} returned a mutable array reference of type {aval_of(x)}{why}"
            )


class CustomVJPPrimal:
    """What ``fwd`` gets with ``symbolic_zeros``: the argument, and whether it is differentiated."""

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value = value
        self.perturbed = perturbed


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The values of a tree of ``CustomVJPPrimal``.

    >>> custom_vjp_primal_tree_values({"a": CustomVJPPrimal(1.0, True)})
    {'a': 1.0}
    """

    def value(leaf: Any) -> Any:
        if not isinstance(leaf, CustomVJPPrimal):
            raise TypeError(f"unexpected leaf type {type(leaf)}")
        return leaf.value

    return tree_map(value, tree)


class _Rules(UserRule):
    """A user's rules on flat lists; they check what these return."""

    def __init__(self, owner: custom_vjp, flat: Flat, static: Static) -> None:
        self.owner = owner
        self.flat = flat
        self.static = static
        self.out_tree: PyTreeDef | None = None

    def forward(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], Backward]:
        """The flat results and residuals, and the function backwards."""
        owner = self.owner
        assert owner.fwd is not None
        given = self.arrays(primals)
        if owner.symbolic_zeros:
            given = [CustomVJPPrimal(x, p) for x, p in zip(given, perturbed, strict=True)]
        dynamic, _ = tree_unflatten(self.flat.in_tree, given)
        with own_lines(owner.fwd):
            pair = owner.fwd(*completed(dynamic, self.static))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"{_pair_of_fwd(owner, 'those')}, but instead of a pair the fwd rule produced {pair}.")
        outs, self.out_tree = tree_flatten(pair[0])
        if self.flat.out_tree is not None and self.out_tree != self.flat.out_tree:
            raise TypeError(
                f"{_pair_of_fwd(owner)}, but instead the fwd rule output's first element had container/pytree "
                f"structure:\n    {with_types(self.out_tree, [aval_of(x) for x in outs])}\nwhile the "
                f"custom_vjp-decorated function {owner.__name__} had output container/pytree structure:\n"
                f"    {with_types(self.flat.out_tree, self.wanted)}."
            )
        found, tree = tree_flatten(pair[1])
        name = name_of(owner.fwd)
        _refuse_refs("fwd", name, outs, ", but mutable array references cannot be returned there.")
        _refuse_refs("fwd", name, found, " that was not an argument.", primals)
        scalars = {n: x for n, x in enumerate(found) if type(x) in dtypes.PYTHON_SCALARS}
        residuals = [x for n, x in enumerate(found) if n not in scalars]
        avals, _ = tree_unflatten(self.flat.in_tree, [aval_of(x) for x in primals])
        nondiff = [x for _, _, x in self.static]
        return outs, residuals, UserBackward(owner, nondiff, avals, tree, self.out_tree, scalars)


def _pair_of_fwd(owner: custom_vjp, those: str = "the output") -> str:
    """What the forward rule must give."""
    assert owner.fwd is not None
    return (
        f"Custom VJP fwd rule {name_of(owner.fwd)} for function {owner.__name__} must produce a pair (list or "
        f"tuple of length two) where the first element represents the primal output (equal to {those} of the "
        f"custom_vjp-decorated function {owner.__name__}) and the second element represents residuals (i.e. values "
        "stored from the forward pass for use on the backward pass)"
    )


class _MappedRules(MappedRule):
    """Residuals are mapped at dimension 0, cotangents where the arguments are; those of others are summed."""

    def forward(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], Backward]:
        made: list[Any] = []

        def both(*xs: Any) -> list[Any]:
            outs, residuals, backward = self.rule.forward(xs, perturbed)
            made[:] = [len(outs), backward]
            return [*outs, *residuals]

        results, dims = batch_flat(both, self.axis, primals, self.dims)
        n, backward = made
        outs, self.out_dims[:] = where_mapped(self.axis, results[:n], dims[:n])
        residuals = at_front(self.axis, results[n:], dims[n:])
        return outs, residuals, mapped_backward(backward, self.axis, self.dims, list(self.out_dims))


class _FewerResults(FewerResults):
    """The cotangents of the other results are zeros."""

    def forward(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], Backward]:
        outs, residuals, backward = self.rule.forward(primals, perturbed)
        zeros = [Zero.of(x) for x, u in zip(outs, self.used, strict=True) if not u]

        def fewer(given: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            return backward(given, merged(self.used, cts, zeros))

        return kept(self.used, outs), residuals, fewer


class _CustomVJP(OwnRules):
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        call_jaxpr, name, num_consts = params["call_jaxpr"], params["name"], params["num_consts"]
        refuse_closed_over("custom_vjp", tangents[:num_consts])
        own = tangents[num_consts:]
        perturbed = nonzeros(own)
        forward = params["rules"].forward
        if params["rules"].owner.optimize_remat:
            plain = function_of(params["fun"], call_jaxpr)
            forward = forward_or_plain(forward, lambda *xs: plain(*primals[:num_consts], *xs))
        outs, residuals, backward = forward(primals[num_consts:], perturbed)
        told = f"{_pair_of_fwd(params['rules'].owner)}, but instead the fwd rule output's first element"
        wanted = None if call_jaxpr is None else call_jaxpr.out_avals
        check_results(told, f"custom_vjp-decorated function {name}", outs, wanted)
        out_avals = tuple(aval_of(x).to_tangent_aval() for x in outs)
        linear = {"backward": backward, "perturbed": perturbed, "out_avals": out_avals, "name": name}
        dots = custom_lin_p.bind(*residuals, *kept(perturbed, own), **linear)
        return outs, [Zero(a) if a.dtype == dtypes.float0 else t for a, t in zip(out_avals, dots, strict=True)]

    def pretty(self, *, name: str, call_jaxpr: ClosedJaxpr, rules: Any, **_: Any) -> dict[str, Any]:
        owner = rules.owner
        told = {"name": name, "bwd": name_of(owner.bwd), "call_jaxpr": call_jaxpr, "fwd": name_of(owner.fwd)}
        return told | {"symbolic_zeros": owner.symbolic_zeros}


_CustomVJP(custom_vjp_call_p, "rules", _MappedRules, _FewerResults).install(
    "impl", "record", "abstract_eval", "jvp", "batch", "dce", "sub_jaxprs", "pretty"
)
custom_vjp_call_p.never("transpose", "its rules say how to differentiate it, and it may not be linear")
custom_vjp_call_p.never("partial_eval", "its rules differentiate it as a whole")
