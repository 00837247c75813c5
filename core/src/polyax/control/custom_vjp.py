"""``custom_vjp``: functions whose derivative the user gives as a pair of functions, forward and backward.

Differentiating the call runs the forward function, and puts a linear equation into the program of tangents, which
only knows how to run backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.control.custom import (
    CustomFunction,
    SymbolicZero,
    at_front,
    check_results,
    refuse_closed_over,
    where_mapped,
)
from polyax.control.lists import cut, kept, merged, nonzeros
from polyax.control.programs import hoisted, run
from polyax.control.rematopt import forward_or_plain
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of, is_array_like, same_type
from polyax.ir.effects import Effects
from polyax.ir.errors import UnexpectedTracerError
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive, ambient, def_rule
from polyax.ops.basis import reduce_sum
from polyax.ops.zeros import instantiate
from polyax.trace.flat import Flat, check_callable, name_of
from polyax.trace.paths import keystr, tree_leaves_with_path
from polyax.trace.stage import DynamicJaxprTrace, trace_to_jaxpr
from polyax.trace.symbolic import Zero, is_undef
from polyax.trace.tracer import Tracer
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten
from polyax.transforms.vmap import Axis, batch_flat, match_axis

custom_vjp_call_p = Primitive("custom_vjp_call", higher_order=True)
""
"""``custom_vjp_call[call_jaxpr rules name num_consts]``: ``call_jaxpr`` where it was recorded, else ``fun``;
``rules.forward`` gives flat results, residuals and ``backward``, which maps residuals and cotangents to cotangents."""

custom_lin_p = Primitive("custom_lin")
""
"""``custom_lin[backward name perturbed out_avals] *residuals *tangents``: tangents of results, known only backwards.
There are tangents for the arguments that are ``perturbed``; ``backward`` gives cotangents of all."""

Backward = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


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
        args = self.positional(args, kwargs)
        self._refuse_tracers([args[n] for n in self.nondiff_positions(args)])
        flat, leaves = self.flat(args)
        rules = _Rules(self, flat, args)
        outs = custom_vjp_call_p.bind(*leaves, fun=flat, rules=rules, call_jaxpr=None, num_consts=0, name=self.__name__)
        tree = rules.out_tree if flat.out_tree is None else flat.out_tree
        assert tree is not None
        return tree_unflatten(tree, outs)

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


class _Rules:
    """A user's rules on flat lists; they check what these return."""

    def __init__(self, owner: custom_vjp, flat: Flat, args: Sequence[Any]) -> None:
        self.owner = owner
        self.flat = flat
        self.args = args
        self.out_tree: PyTreeDef | None = None

    def forward(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], Backward]:
        """The flat results and residuals, and the function backwards."""
        owner = self.owner
        assert owner.fwd is not None
        given: Sequence[Any] = primals
        if owner.symbolic_zeros:
            given = [CustomVJPPrimal(x, p) for x, p in zip(primals, perturbed, strict=True)]
        dynamic, _ = tree_unflatten(self.flat.in_tree, given)
        pair = owner.fwd(*owner.with_nondiff(dynamic, self.args))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"{self._pair_of_fwd()}, but instead of a pair the fwd rule produced {pair}.")
        outs, self.out_tree = tree_flatten(pair[0])
        if self.flat.out_tree is not None and self.out_tree != self.flat.out_tree:
            raise TypeError(
                f"{self._pair_of_fwd()}, but instead the fwd rule output's first element had container/pytree "
                f"structure:\n    {self.out_tree}\nwhile the custom_vjp-decorated function {owner.__name__} had output "
                f"container/pytree structure:\n    {self.flat.out_tree}."
            )
        residuals, tree = tree_flatten(pair[1])
        avals, _ = tree_unflatten(self.flat.in_tree, [aval_of(x) for x in primals])
        nondiff = [self.args[n] for n in owner.nondiff_positions(self.args)]
        return outs, residuals, _Backward(owner, nondiff, avals, tree, self.out_tree)

    def _pair_of_fwd(self) -> str:
        owner = self.owner
        assert owner.fwd is not None
        return (
            f"Custom VJP fwd rule {name_of(owner.fwd)} for function {owner.__name__} must produce a pair (list or "
            f"tuple of length two) where the first element represents the primal output (equal to those of the "
            f"custom_vjp-decorated function {owner.__name__}) and the second element represents residuals (i.e. values "
            "stored from the forward pass for use on the backward pass)"
        )


class _Backward:
    """A user's backward function on flat lists, for arguments of the types ``avals``."""

    def __init__(
        self, owner: custom_vjp, nondiff: Sequence[Any], avals: Any, res_tree: PyTreeDef, out_tree: PyTreeDef
    ) -> None:
        self.owner = owner
        self.nondiff = nondiff
        self.avals = avals
        self.res_tree = res_tree
        self.out_tree = out_tree

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """A cotangent or ``Zero`` for each leaf of the arguments."""
        owner = self.owner
        assert owner.bwd is not None
        given = [
            SymbolicZero(ct.aval) if owner.symbolic_zeros and type(ct) is Zero else _array(instantiate(ct))
            for ct in cts
        ]
        out = owner.bwd(*self.nondiff, tree_unflatten(self.res_tree, residuals), tree_unflatten(self.out_tree, given))
        return self._cotangents(tuple(out) if isinstance(out, list) else out)

    def _rule(self) -> str:
        assert self.owner.bwd is not None
        return f"The rule is {name_of(self.owner.bwd)}, of function {self.owner.__name__}."

    def _cotangents(self, out: Any) -> list[Any]:
        args = self.avals
        if not isinstance(out, tuple) or len(out) != len(args):
            raise self._structure(out)
        found: list[Any] = []
        for n, (arg, cts) in enumerate(zip(args, out, strict=True)):
            found += self._of_argument(n, arg, cts, out)
        return found

    def _structure(self, out: Any) -> TypeError:
        return TypeError(
            "Custom VJP bwd rule must produce an output with the same container (pytree) structure as the args tuple "
            "of the primal function, and in particular must produce a tuple of length equal to the number of arguments "
            f"to the primal function, but got bwd output structure {tree_structure(out)} for primal input structure "
            f"{tree_structure(tuple(self.avals))}. {self._rule()}"
        )

    def _of_argument(self, n: int, arg: Any, cts: Any, out: Any) -> list[Any]:
        """None in place of a subtree stands for zeros."""
        paths = tree_leaves_with_path(arg)
        if cts is None:
            return [Zero(aval.to_tangent_aval()) for _, aval in paths]
        try:
            leaves = tree_structure(arg).flatten_up_to(cts)
        except (ValueError, TypeError):
            raise self._structure(out) from None
        if not all(ct is None or type(ct) in (Zero, SymbolicZero) or is_array_like(ct) for ct in leaves):
            raise self._structure(out)
        return [self._checked(n, path, aval, ct) for (path, aval), ct in zip(paths, leaves, strict=True)]

    def _checked(self, n: int, path: Any, aval: ShapedArray, ct: Any) -> Any:
        wanted = aval.to_tangent_aval()
        if ct is None or type(ct) in (Zero, SymbolicZero) or wanted.dtype == dtypes.float0:
            return Zero(wanted)
        if isinstance(ct, np.ndarray) and ct.dtype == dtypes.float0:
            return Zero(wanted)
        got = aval_of(ct)
        if not same_type(got, wanted):
            part = "shapes" if got.shape != wanted.shape else "dtypes"
            raise ValueError(
                "Custom VJP bwd rule must produce an output with the same type as the args tuple of the primal "
                f"function, but at output[{n}]{keystr(path)} the bwd rule produced an output of type {got.str_short()} "
                f"corresponding to an input of type {aval.str_short()}, so the {part} do not match. {self._rule()}"
            )
        return ct


def _array(ct: Any) -> Any:
    """Rules may rely on the attributes of arrays."""
    return aval_of(ct).dtype.type(ct) if type(ct) in dtypes.PYTHON_SCALARS else ct


class _MappedRules:
    """Rules on mapped values; results are mapped at dimension 0 or not at all, as ``out_dims`` says after a call.
    Residuals are mapped at dimension 0, cotangents where the arguments are; those of others are summed."""

    def __init__(self, rules: Any, axis: Axis, dims: Sequence[int | None], out_dims: list[int | None]) -> None:
        self.rules = rules
        self.owner = rules.owner
        self.axis = axis
        self.dims = dims
        self.out_dims = out_dims

    def forward(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], Backward]:
        made: list[Any] = []

        def both(*xs: Any) -> list[Any]:
            outs, residuals, backward = self.rules.forward(xs, perturbed)
            made[:] = [len(outs), backward]
            return [*outs, *residuals]

        results, dims = batch_flat(both, self.axis, primals, self.dims)
        n, backward = made
        outs, self.out_dims[:] = where_mapped(self.axis, results[:n], dims[:n])
        residuals = at_front(self.axis, results[n:], dims[n:])
        return outs, residuals, mapped_backward(backward, self.axis, self.dims, list(self.out_dims))


def mapped_backward(
    backward: Backward, axis: Axis, dims: Sequence[int | None], out_dims: Sequence[int | None]
) -> Backward:
    """``backward`` for residuals mapped at dimension 0, results at ``out_dims`` and arguments at ``dims``."""

    def mapped(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        nonzero = nonzeros(cts)
        zeros = [_example(ct, d) for ct, d, nz in zip(cts, out_dims, nonzero, strict=True) if not nz]
        found: list[Any] = []

        def back(*xs: Any) -> list[Any]:
            own, given = cut(xs, len(residuals))
            found[:] = backward(own, merged(nonzero, given, zeros))
            return kept(nonzeros(found), found)

        given_dims = [*[0] * len(residuals), *kept(nonzero, out_dims)]
        outs = iter(zip(*batch_flat(back, axis, [*residuals, *kept(nonzero, cts)], given_dims), strict=True))
        return [
            _mapped_zero(axis, ct, d) if type(ct) is Zero else _cotangent_at(axis, *next(outs), d)
            for ct, d in zip(found, dims, strict=True)
        ]

    return mapped


def _example(zero: Zero, dim: int | None) -> Zero:
    shape = zero.aval.shape
    return zero if dim is None else Zero(zero.aval.update(shape=shape[:dim] + shape[dim + 1 :]))


def _mapped_zero(axis: Axis, zero: Zero, dim: int | None) -> Zero:
    shape = zero.aval.shape
    return zero if dim is None else Zero(zero.aval.update(shape=(*shape[:dim], axis.size, *shape[dim:])))


def _cotangent_at(axis: Axis, ct: Any, dim: int | None, wanted: int | None) -> Any:
    if wanted is not None:
        return match_axis(axis.size, dim, wanted, ct)
    return reduce_sum(match_axis(axis.size, dim, 0, ct), (0,))


def _function(fun: Callable[..., Any] | None, call_jaxpr: ClosedJaxpr | None) -> Callable[..., list[Any]]:
    return fun if call_jaxpr is None else lambda *args: run(call_jaxpr, args)  # pyright: ignore[reportReturnType]


@def_rule(custom_vjp_call_p, "impl")
def _impl(*args: Any, fun: Any, call_jaxpr: ClosedJaxpr | None, **_: Any) -> list[Any]:
    return _function(fun, call_jaxpr)(*args)


@def_rule(custom_vjp_call_p, "stage")
def _stage(trace: DynamicJaxprTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    if params["call_jaxpr"] is not None:
        return trace.record(custom_vjp_call_p, args, params)
    closed = trace_to_jaxpr(params["fun"], [aval_of(x) for x in args], name=params["name"])
    program, consts = hoisted(closed)
    recorded = {**params, "fun": None, "call_jaxpr": program, "num_consts": len(consts) + params["num_consts"]}
    return trace.record(custom_vjp_call_p, [*consts, *args], recorded)


@def_rule(custom_vjp_call_p, "abstract_eval")
def _abstract_eval(*_: ShapedArray, call_jaxpr: ClosedJaxpr, **__: Any) -> tuple[list[ShapedArray], Effects]:
    return call_jaxpr.out_avals, call_jaxpr.effects


@def_rule(custom_vjp_call_p, "jvp")
def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    fun: Any,
    call_jaxpr: ClosedJaxpr | None,
    rules: Any,
    num_consts: int,
    name: str,
) -> Any:
    refuse_closed_over("custom_vjp", tangents[:num_consts])
    own = tangents[num_consts:]
    perturbed = nonzeros(own)
    forward = rules.forward
    if rules.owner.optimize_remat:
        plain = _function(fun, call_jaxpr)
        forward = forward_or_plain(forward, lambda *xs: plain(*primals[:num_consts], *xs))
    outs, residuals, backward = forward(primals[num_consts:], perturbed)
    check_results("Custom VJP fwd rule", name, outs, call_jaxpr)
    out_avals = tuple(aval_of(x).to_tangent_aval() for x in outs)
    dots = custom_lin_p.bind(
        *residuals, *kept(perturbed, own), backward=backward, perturbed=perturbed, out_avals=out_avals, name=name
    )
    return outs, [Zero(a) if a.dtype == dtypes.float0 else t for a, t in zip(out_avals, dots, strict=True)]


@def_rule(custom_vjp_call_p, "batch")
def _batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    fun: Any,
    call_jaxpr: ClosedJaxpr | None,
    rules: Any,
    num_consts: int,
    name: str,
) -> Any:
    """The function and its rules are mapped; whichever runs says where results are mapped."""
    out_dims: list[int | None] = []

    def mapped(*xs: Any) -> list[Any]:
        outs, out_dims[:] = where_mapped(axis, *batch_flat(_function(fun, call_jaxpr), axis, xs, dims))
        return outs

    mapped_rules = _MappedRules(rules, axis, dims[num_consts:], out_dims)
    outs = custom_vjp_call_p.bind(
        *args, fun=mapped, call_jaxpr=None, rules=mapped_rules, num_consts=num_consts, name=name
    )
    return outs, list(out_dims)


custom_vjp_call_p.never("transpose", "its rules say how to differentiate it, and it may not be linear")
custom_vjp_call_p.never("partial_eval", "its rules differentiate it as a whole")
custom_vjp_call_p.never("dce", "its rules give all results at once")


@def_rule(custom_vjp_call_p, "sub_jaxprs")
def _sub_jaxprs(*, call_jaxpr: ClosedJaxpr, **_: Any) -> list[ClosedJaxpr]:
    return [call_jaxpr]


@def_rule(custom_vjp_call_p, "pretty")
def _pretty(*, name: str, call_jaxpr: ClosedJaxpr, rules: Any, **_: Any) -> dict[str, Any]:
    owner = rules.owner
    return {
        "name": name,
        "bwd": name_of(owner.bwd),
        "call_jaxpr": call_jaxpr,
        "fwd": name_of(owner.fwd),
        "symbolic_zeros": owner.symbolic_zeros,
    }


# --- the linear equation ------------------------------------------------------------------------------------------


@def_rule(custom_lin_p, "abstract_eval")
def _lin_abstract(*_: ShapedArray, out_avals: tuple[ShapedArray, ...], **__: Any) -> list[ShapedArray]:
    return list(out_avals)


@def_rule(custom_lin_p, "impl")
@def_rule(custom_lin_p, "decompose")
def _lin_forward(*_: Any, name: str, **__: Any) -> list[Any]:
    where = f" It was called at {ambient.source}." if ambient.source else ""
    raise TypeError(
        f"can't apply forward-mode autodiff (jvp) to a custom_vjp function: {name} has a rule for reverse mode only. "
        f"Use custom_jvp, whose rules serve both modes.{where}"
    )


@def_rule(custom_lin_p, "transpose")
def _lin_transpose(
    cts: Sequence[Any], *args: Any, backward: Backward, perturbed: Sequence[bool], **_: Any
) -> list[Any]:
    residuals, linear = cut(args, len(args) - sum(perturbed))
    given = kept(perturbed, backward(residuals, list(cts)))
    return [*[None] * len(residuals), *(ct if is_undef(x) else None for x, ct in zip(linear, given, strict=True))]


@def_rule(custom_lin_p, "batch")
def _lin_batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    backward: Backward,
    perturbed: Sequence[bool],
    out_avals: tuple[ShapedArray, ...],
    name: str,
) -> Any:
    num = len(args) - sum(perturbed)
    residuals, dots = at_front(axis, args[:num], dims[:num]), args[num:]
    where = merged(perturbed, dims[num:], [None] * perturbed.count(False))
    outs = custom_lin_p.bind(
        *residuals,
        *dots,
        backward=mapped_backward(backward, axis, where, [0] * len(out_avals)),
        perturbed=perturbed,
        out_avals=tuple(a.update(shape=(axis.size, *a.shape)) for a in out_avals),
        name=name,
    )
    return outs, [0] * len(outs)


custom_lin_p.never("jvp", "it is linear already: its tangent is itself")
