"""``custom_vjp``: functions whose derivative the user gives as a pair of functions, forward and backward.

Differentiating the call runs the forward function, and puts a linear equation into the program of tangents, which
only knows how to run backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.control.custom import Signature, SymbolicZero, refuse_closed_over
from polyax.control.custom_jvp import at_front
from polyax.control.lists import cut
from polyax.control.programs import hoisted, run
from polyax.ir.aval import ShapedArray, aval_of, is_array_like, same_type
from polyax.ir.dtypes import float0
from polyax.ir.effects import Effects
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.basis import reduce_sum
from polyax.ops.zeros import instantiate
from polyax.trace.flat import Flat, check_callable, name_of
from polyax.trace.paths import keystr, tree_leaves_with_path
from polyax.trace.stage import DynamicJaxprTrace, trace_to_jaxpr
from polyax.trace.symbolic import Zero, is_undef
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_structure, tree_unflatten
from polyax.transforms.vmap import Axis, batch_flat, match_axis

custom_vjp_call_p = Primitive("custom_vjp_call", higher_order=True)
""
"""``custom_vjp_call[call_jaxpr fwd bwd name num_consts]``: ``call_jaxpr`` where it was recorded, else ``fun``."""

custom_lin_p = Primitive("custom_lin")
""
"""``custom_lin[bwd name num_res out_avals] *residuals *tangents``: tangents of results, known only backwards."""


class custom_vjp:
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

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ) -> None:
        self.fun = fun
        self.nondiff_argnums = tuple(nondiff_argnums)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False
        self._signature = Signature(fun, nondiff_argnums, nondiff_argnames)
        self.__wrapped__ = fun
        self.__name__ = name_of(fun)
        self.__doc__ = fun.__doc__
        self.__module__ = fun.__module__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else lambda *args, **kwargs: self(instance, *args, **kwargs)

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
          optimize_remat: kept for compatibility; residuals that aren't needed are never computed.
        """
        check_callable(fwd), check_callable(bwd)
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(f"No VJP defined for custom_vjp function {self.__name__} using defvjp.")
        positional = self._signature.positional(args, kwargs)
        flat, leaves, nondiff = self._signature.flat(positional)
        rules = _Rules(self, flat, positional, nondiff)
        outs = custom_vjp_call_p.bind(
            *leaves, fun=flat, fwd=rules.forward, bwd=rules.backward, call_jaxpr=None, num_consts=0, name=self.__name__
        )
        return tree_unflatten(flat.out_tree or rules.out_tree, outs)


class CustomVJPPrimal:
    """What ``fwd`` gets with ``symbolic_zeros``: the argument, and whether it is differentiated."""

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value = value
        self.perturbed = perturbed


class _Rules:
    """A user's rules on flat lists; they check what these return."""

    def __init__(self, owner: custom_vjp, flat: Flat, args: Sequence[Any], nondiff: Sequence[Any]) -> None:
        self.owner = owner
        self.args = args
        self.nondiff = nondiff
        self.in_tree = flat.in_tree
        self.out_tree: PyTreeDef | None = None
        self.res_tree: PyTreeDef | None = None
        self.in_avals: list[ShapedArray] = []

    def forward(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any]]:
        """The flat results and residuals."""
        owner = self.owner
        assert owner.fwd is not None
        self.in_avals = [aval_of(x) for x in primals]
        given: Sequence[Any] = primals
        if owner.symbolic_zeros:
            given = [CustomVJPPrimal(x, p) for x, p in zip(primals, perturbed, strict=True)]
        (dynamic, _) = tree_unflatten(self.in_tree, given)
        values = list(dynamic)
        for n, x in zip([n % len(self.args) for n in owner._signature.nondiff], self.nondiff, strict=True):
            values.insert(n, x)
        pair = owner.fwd(*values)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"Custom VJP fwd rule {name_of(owner.fwd)} for function {owner.__name__} must produce a pair (list or "
                f"tuple of length two) where the first element represents the primal output and the second the "
                f"residuals, but got {pair}."
            )
        outs, self.out_tree = tree_flatten(pair[0])
        residuals, self.res_tree = tree_flatten(pair[1])
        return outs, residuals

    def backward(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """A cotangent or ``Zero`` for each leaf of the arguments."""
        owner = self.owner
        assert owner.bwd is not None and self.res_tree is not None and self.out_tree is not None
        given = [SymbolicZero(c.aval) if owner.symbolic_zeros and type(c) is Zero else instantiate(c) for c in cts]
        out = owner.bwd(*self.nondiff, tree_unflatten(self.res_tree, residuals), tree_unflatten(self.out_tree, given))
        return self._cotangents(out)

    def _what(self) -> str:
        assert self.owner.bwd is not None
        return f"Custom VJP bwd rule {name_of(self.owner.bwd)} for function {self.owner.__name__}"

    def _cotangents(self, out: Any) -> list[Any]:
        (args, _) = tree_unflatten(self.in_tree, self.in_avals)
        out = tuple(out) if isinstance(out, list) else out
        if not isinstance(out, tuple) or len(out) != len(args):
            got = tree_structure(out)
            raise TypeError(
                f"{self._what()} must produce a tuple of a cotangent for each of the {len(args)} arguments of the "
                f"primal function: expected the structure {tree_structure(args)}, got {got}."
            )
        found: list[Any] = []
        for n, (arg, cts) in enumerate(zip(args, out, strict=True)):
            found += self._of_argument(n, arg, cts)
        return found

    def _of_argument(self, n: int, arg: Any, cts: Any) -> list[Any]:
        """None in place of a subtree stands for zeros."""
        paths = tree_leaves_with_path(arg)
        if cts is None:
            return [Zero(aval.to_tangent_aval()) for _, aval in paths]
        tree = tree_structure(arg)
        try:
            leaves = tree.flatten_up_to(cts)
        except (ValueError, TypeError):
            raise TypeError(
                f"{self._what()} must produce cotangents of the structure of the arguments: for argument {n} expected "
                f"{tree}, got {tree_structure(cts)}."
            ) from None
        return [self._checked(n, path, aval, ct) for (path, aval), ct in zip(paths, leaves, strict=True)]

    def _checked(self, n: int, path: Any, aval: ShapedArray, ct: Any) -> Any:
        wanted = aval.to_tangent_aval()
        if ct is None or type(ct) in (Zero, SymbolicZero) or wanted.dtype == float0:
            return Zero(wanted)
        if isinstance(ct, np.ndarray) and ct.dtype == float0:
            return Zero(wanted)
        got = aval_of(ct) if is_array_like(ct) else None
        if got is None or not same_type(got, wanted):
            raise ValueError(
                f"{self._what()} must produce cotangents with the types of the arguments: for argument "
                f"{n}{keystr(path)} of type {aval} expected {wanted}, got {got or ct!r}."
            )
        return ct


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
    recorded = {**params, "fun": None, "call_jaxpr": program, "num_consts": len(consts)}
    return trace.record(custom_vjp_call_p, [*consts, *args], recorded)


@def_rule(custom_vjp_call_p, "abstract_eval")
def _abstract_eval(*_: ShapedArray, call_jaxpr: ClosedJaxpr, **__: Any) -> tuple[list[ShapedArray], Effects]:
    return call_jaxpr.out_avals, call_jaxpr.effects


@def_rule(custom_vjp_call_p, "jvp")
def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, fwd: Any, bwd: Any, num_consts: int, name: str, **_: Any
) -> Any:
    refuse_closed_over("custom_vjp", tangents[:num_consts])
    own = tangents[num_consts:]
    outs, residuals = fwd(primals[num_consts:], [type(t) is not Zero for t in own])
    out_avals = tuple(aval_of(x).to_tangent_aval() for x in outs)
    dots = custom_lin_p.bind(
        *residuals, *map(instantiate, own), num_res=len(residuals), bwd=bwd, out_avals=out_avals, name=name
    )
    return outs, [Zero(a) if a.dtype == float0 else t for a, t in zip(out_avals, dots, strict=True)]


@def_rule(custom_vjp_call_p, "batch")
def _batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    fun: Any,
    call_jaxpr: ClosedJaxpr | None,
    fwd: Any,
    bwd: Any,
    num_consts: int,
    name: str,
) -> Any:
    """The function and its rules are mapped; results and residuals are mapped at dimension 0, cotangents are where the
    arguments are, and those of arguments that aren't mapped are summed."""
    own = dims[num_consts:]

    def mapped(*xs: Any) -> list[Any]:
        return at_front(axis, *batch_flat(_function(fun, call_jaxpr), axis, xs, dims))

    def mapped_fwd(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any]]:
        sizes: list[int] = []

        def both(*xs: Any) -> list[Any]:
            outs, residuals = fwd(xs, perturbed)
            sizes.append(len(outs))
            return [*outs, *residuals]

        outs, residuals = cut(at_front(axis, *batch_flat(both, axis, primals, own)), *sizes)
        return outs, residuals

    outs = custom_vjp_call_p.bind(
        *args,
        fun=mapped,
        call_jaxpr=None,
        fwd=mapped_fwd,
        bwd=mapped_backward(bwd, axis, own),
        num_consts=num_consts,
        name=name,
    )
    return outs, [0] * len(outs)


def mapped_backward(bwd: Any, axis: Axis, dims: Sequence[int | None]) -> Any:
    def mapped(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        def back(*xs: Any) -> list[Any]:
            own, given = cut(xs, len(residuals))
            return list(map(instantiate, bwd(own, given)))

        values = [*residuals, *map(instantiate, cts)]
        outs, out_dims = batch_flat(back, axis, values, [0] * len(values))
        return [_cotangent_at(axis, x, d, wanted) for x, d, wanted in zip(outs, out_dims, dims, strict=True)]

    return mapped


def _cotangent_at(axis: Axis, ct: Any, dim: int | None, wanted: int | None) -> Any:
    if wanted is not None:
        return match_axis(axis.size, dim, wanted, ct)
    return reduce_sum(match_axis(axis.size, dim, 0, ct), (0,))


custom_vjp_call_p.never("transpose", "its rules say how to differentiate it, and it may not be linear")
custom_vjp_call_p.never("partial_eval", "its rules differentiate it as a whole")
custom_vjp_call_p.never("dce", "its rules give all results at once")


@def_rule(custom_vjp_call_p, "sub_jaxprs")
def _sub_jaxprs(*, call_jaxpr: ClosedJaxpr, **_: Any) -> list[ClosedJaxpr]:
    return [call_jaxpr]


@def_rule(custom_vjp_call_p, "pretty")
def _pretty(*, name: str, call_jaxpr: ClosedJaxpr, num_consts: int, **_: Any) -> dict[str, Any]:
    return {"name": name, "call_jaxpr": call_jaxpr, "num_consts": num_consts}


# --- the linear equation ------------------------------------------------------------------------------------------


@def_rule(custom_lin_p, "abstract_eval")
def _lin_abstract(*_: ShapedArray, out_avals: tuple[ShapedArray, ...], **__: Any) -> list[ShapedArray]:
    return list(out_avals)


@def_rule(custom_lin_p, "impl")
def _lin_impl(*_: Any, name: str, **__: Any) -> list[Any]:
    raise TypeError(
        f"can't apply forward-mode differentiation (jvp) to a custom_vjp function: {name} has a rule for reverse mode "
        "only. Use custom_jvp, whose rules serve both modes."
    )


@def_rule(custom_lin_p, "transpose")
def _lin_transpose(
    cts: Sequence[Any], *args: Any, bwd: Any, num_res: int, out_avals: tuple[ShapedArray, ...], **_: Any
) -> list[Any]:
    residuals, linear = cut(args, num_res)
    given = bwd(residuals, list(cts))
    return [*[None] * num_res, *(ct if is_undef(x) else None for x, ct in zip(linear, given, strict=True))]


@def_rule(custom_lin_p, "batch")
def _lin_batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    bwd: Any,
    num_res: int,
    out_avals: tuple[ShapedArray, ...],
    name: str,
) -> Any:
    residuals, dots = cut(args, num_res)
    res_dims, dot_dims = cut(dims, num_res)
    residuals = at_front(axis, residuals, res_dims)
    outs = custom_lin_p.bind(
        *residuals,
        *dots,
        bwd=mapped_backward(bwd, axis, dot_dims),
        num_res=num_res,
        out_avals=tuple(a.update(shape=(axis.size, *a.shape)) for a in out_avals),
        name=name,
    )
    return outs, [0] * len(outs)


custom_lin_p.never("jvp", "it is linear already: its tangent is itself")
