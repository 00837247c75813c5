"""``custom_vmap``: functions with a rule of their own for being mapped; ``sequential_vmap`` maps by a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.calls.custom import CustomFunction, OwnRules, UserRule, function_of, unflatten
from polyax.control.flow.looping import map as loop_map
from polyax.control.inner.bodies import traced
from polyax.control.inner.lists import Mask, kept, merged, nonzeros, partition
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.explicit import without_dim
from polyax.ops.basis import move_axis
from polyax.trace.context import set_trace
from polyax.trace.flat import Flat, name_of
from polyax.trace.symbolic import Zero
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_map, tree_unflatten
from polyax.transforms.jvp import jvp_flat
from polyax.transforms.linearize import PartialTrace
from polyax.transforms.vmap import AxisData, batch_flat, match_axis

custom_vmap_p = Primitive("custom_vmap_call", higher_order=True)
"""``custom_vmap_call[call_jaxpr rule name num_consts]``: ``call_jaxpr`` where it was recorded, else ``fun``;
``rule`` maps an axis size, masks and lists to lists of results and masks."""


class custom_vmap(CustomFunction):
    """A function with a rule of its own for ``vmap``.

    >>> @custom_vmap
    ... def f(x):
    ...     return x + 1
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, x):
    ...     return x + 100, in_batched[0]
    >>> import polyax, numpy as np
    >>> print(polyax.vmap(f)(np.zeros(2, np.float32)))
    [100. 100.]
    """

    kind = "custom_vmap"
    vmap_rule: Callable[..., Any] | None = None

    def __init__(self, fun: Callable[..., Any]) -> None:
        super().__init__(fun)

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the rule: ``vmap_rule(axis_size, in_batched, *args) -> (results, out_batched)``.

        ``in_batched`` and ``out_batched`` are pytrees of booleans like the arguments (a list) and the results; what is
        mapped is so at dimension 0.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {name_of(self.fun)} using def_vmap."
            )
        call = self.split(args, kwargs)
        flat = call.flat()
        rule = _Rule(self, flat)
        params = {"fun": flat, "rule": rule, "call_jaxpr": None, "num_consts": 0, "name": self.__name__}
        return unflatten(flat, rule, custom_vmap_p.bind(*call.leaves, **params))


class _Rule(UserRule):
    """A user's rule on flat lists."""

    def __init__(self, owner: custom_vmap, flat: Flat) -> None:
        self.owner = owner
        self.flat = flat
        self.in_tree = flat.in_tree
        self.out_tree: PyTreeDef | None = None

    def __call__(self, size: int, mapped: Sequence[bool], xs: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        rule = self.owner.vmap_rule
        assert rule is not None
        args, _ = tree_unflatten(self.in_tree, self.arrays(xs))
        in_batched, _ = tree_unflatten(self.in_tree, mapped)
        pair = rule(size, list(in_batched), *args)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                f"the vmap rule of {name_of(self.owner.fun)} must return a pair of results and out_batched, got {pair}"
            )
        outs, self.out_tree = tree_flatten(pair[0])
        flags, flag_tree = tree_flatten(pair[1])
        if flag_tree != self.out_tree:
            raise ValueError(
                f"structure of output value and output batching specification returned by custom vmap rule "
                f"({name_of(rule)}) do not match.\nOutput values: {self.out_tree}\nBatching spec: {flag_tree}"
            )
        self._learn_results([without_dim(aval_of(x), 0) if m else aval_of(x) for x, m in zip(xs, mapped, strict=True)])
        if self.flat.out_tree != self.out_tree:
            raise ValueError(
                f"structure of output returned by custom vmap rule ({name_of(rule)}) does not match that of original "
                f"custom-vmapped function.\nOriginal output: {self.flat.out_tree}\nRule output: {self.out_tree}"
            )
        return outs, flags

    def _learn_results(self, avals: Sequence[ShapedArray]) -> None:
        """Traces the function for one example, if nobody has called it yet: its results are what the rule's must be."""
        if self.flat.out_tree is None:
            fun = self.flat.fun
            example = tree_unflatten(self.in_tree, avals)
            _, self.flat.out_tree = traced(
                lambda xs, named: fun(*xs, **named), example, fun, "custom_vmap", "custom_vmap"
            )


def _at_front(xs: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """What is mapped, at dimension 0."""
    return [x if d is None else move_axis(x, d, 0) for x, d in zip(xs, dims, strict=True)]


OwnRules(custom_vmap_p).install("impl", "record", "abstract_eval", "sub_jaxprs")


@def_rule(custom_vmap_p, "batch")
def _batch(axis: AxisData, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
    num_consts = params["num_consts"]
    if any(d is not None for d in dims[:num_consts]):
        raise ValueError(
            f"the custom_vmap function {params['name']} closes over a mapped value; pass it as an argument"
        )
    own = dims[num_consts:]
    if all(d is None for d in own):
        outs = custom_vmap_p.bind(*args, **params)
        return outs, [None] * len(outs)
    xs = _at_front(args[num_consts:], own)
    outs, flags = params["rule"](axis.size, [d is not None for d in own], xs)
    return outs, [0 if f else None for f in flags]


@def_rule(custom_vmap_p, "jvp")
def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    fun: Any,
    call_jaxpr: ClosedJaxpr | None,
    rule: _Rule,
    **rest: Any,
) -> Any:
    """The derivative is mapped by mapping the rule's own derivative."""
    nonzero = nonzeros(tangents)
    derived = _DerivedRule(rule, nonzero[rest["num_consts"] :])
    program = derived.with_tangents(function_of(fun, call_jaxpr), nonzero)
    args = [*primals, *kept(nonzero, tangents)]
    outs = custom_vmap_p.bind(*args, fun=program, call_jaxpr=None, rule=derived, **rest)
    n = len(derived.moving)
    zeros = [Zero.of(x) for x, moves in zip(outs[:n], derived.moving, strict=True) if not moves]
    return outs[:n], merged(derived.moving, outs[n:], zeros)


class _DerivedRule:
    """The rule of a derivative: it takes values, then the tangents of those where ``nonzero`` holds."""

    def __init__(self, rule: Callable[..., Any], nonzero: Sequence[bool]) -> None:
        self.rule = rule
        self.nonzero = nonzero
        self.moving: Mask = ()
        """Which results had tangents when the derivative, or its rule, last ran."""
        self.mapped: Sequence[bool] = ()
        """Which results were mapped when the user's rule last ran."""

    def __call__(self, size: int, mapped: Sequence[bool], xs: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        n = len(self.nonzero)
        pairs = list(zip([k for k, nz in enumerate(self.nonzero) if nz], range(n, len(xs)), strict=True))
        if _apart(mapped, n, pairs):
            dims = [0 if m else None for m in mapped]
            outs, out_dims = batch_flat(self._of_rule(size, [False] * n), AxisData(size), xs, dims)
            if not any(self.mapped):
                return _at_front(outs, out_dims), [d is not None for d in out_dims]
        mapped, xs = _alike(size, mapped, xs, pairs)
        outs = self._of_rule(size, mapped[:n])(*xs)
        return outs, [*self.mapped, *kept(self.moving, self.mapped)]

    def _of_rule(self, size: int, mapped: Sequence[bool]) -> Callable[..., list[Any]]:
        """The derivative of the user's rule, for values that are mapped where ``mapped`` says."""

        def results(*values: Any) -> list[Any]:
            outs, self.mapped = self.rule(size, mapped, values)
            return outs

        return self.with_tangents(results, self.nonzero)

    def with_tangents(self, fun: Callable[..., Sequence[Any]], nonzero: Sequence[bool]) -> Callable[..., list[Any]]:
        """``fun`` of values and the tangents that aren't zero; gives results, and the tangents of those that move."""

        def both(*xs: Any) -> list[Any]:
            n = len(nonzero)
            tangents = iter(xs[n:])
            dots = [next(tangents) if nz else Zero.of(x) for nz, x in zip(nonzero, xs[:n], strict=True)]
            outs, out_dots = jvp_flat(fun, xs[:n], dots)
            self.moving = nonzeros(out_dots)
            return [*outs, *kept(self.moving, out_dots)]

        return both


def _apart(flags: Sequence[bool], n: int, pairs: Sequence[tuple[int, int]]) -> bool:
    """Whether nothing is mapped in the value and the tangent at once: the rule then takes one example, and the axis is
    that of its derivative alone."""
    of = dict(pairs)
    return not any(flags[k] and flags[of.get(k, k)] for k in range(n))


def _alike(
    size: int, flags: Sequence[bool], xs: Sequence[Any], pairs: Sequence[tuple[int, int]]
) -> tuple[list[bool], list[Any]]:
    """Of each pair of a value and its tangent, both are mapped if one is: the rule takes them together."""
    wanted = list(flags)
    for k, d in pairs:
        wanted[k] = wanted[d] = flags[k] or flags[d]
    at = lambda flag: 0 if flag else None
    return wanted, [match_axis(AxisData(size), at(f), at(w), x) for f, w, x in zip(flags, wanted, xs, strict=True)]


@def_rule(custom_vmap_p, "partial_eval")
def _partial_eval(trace: PartialTrace, unknown: Sequence[bool], args: Sequence[Any], params: dict[str, Any]) -> Any:
    """What is recorded for the backward pass are the operations themselves, which are mapped by their own rules."""
    with set_trace(trace):
        return function_of(params["fun"], params["call_jaxpr"])(*args)


custom_vmap_p.never("transpose", "its linear part is recorded as the operations that it consists of")

custom_vmap_p.never("dce", "its rule gives all results at once")


@def_rule(custom_vmap_p, "pretty")
def _pretty(*, name: str, call_jaxpr: ClosedJaxpr, num_consts: int, **_: Any) -> dict[str, Any]:
    return {"name": name, "call_jaxpr": call_jaxpr, "num_consts": num_consts}


def sequential_vmap(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, which ``vmap`` maps by a loop instead of by rules for its operations: less memory, for more time."""
    mapped = custom_vmap(f)

    @mapped.def_vmap
    def rule(axis_size: int, in_batched: Sequence[Any], *args: Any) -> tuple[Any, Any]:
        leaves, tree = tree_flatten(args)
        flags, _ = tree_flatten(in_batched)
        scanned, fixed = partition(flags, leaves)
        if not scanned:  # only a derivative is mapped
            out = f(*args)
            return out, tree_map(lambda _: False, out)

        def one(xs: tuple[Any, ...]) -> Any:
            return mapped(*tree_unflatten(tree, merged(flags, xs, fixed)))

        out = loop_map(one, tuple(scanned))
        outs, out_tree = tree_flatten(out)
        return out, tree_unflatten(out_tree, [True] * len(outs))

    return mapped
