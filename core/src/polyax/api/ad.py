"""Derivatives: ``grad value_and_grad vjp jvp linearize``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.api.arguments import as_indices, check_arrays, wraps
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import eval_jaxpr
from polyax.ops.basis import convert_element_type
from polyax.ops.zeros import instantiate
from polyax.runtime.errors import api_boundary
from polyax.trace.flat import Flat, FlatAux, check_callable
from polyax.trace.paths import differences, keystr, tree_leaves_with_path
from polyax.trace.symbolic import UndefPrimal, Zero
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_structure, tree_unflatten
from polyax.transforms.jvp import jvp_flat
from polyax.transforms.linearize import Linearized, linearize_flat
from polyax.transforms.transpose import backward_pass


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """The gradient of a scalar-valued function, by reverse mode.

    Args:
      fun: a function whose result is a scalar of a floating-point type (complex if ``holomorphic``).
      argnums: positions of the arguments to differentiate with respect to.
      has_aux: whether ``fun`` returns a pair of which only the first is differentiated.
      holomorphic: whether ``fun`` is promised to be holomorphic.
      allow_int: whether integer inputs are allowed; their gradients are of type ``float0``.
      reduce_axes: not supported; must be empty.

    Returns:
      A function with the arguments of ``fun`` that gives the gradient, shaped like the argument (a tuple for several
      ``argnums``), or a pair of it and the auxiliary output.

    Raises:
      TypeError: the output is not a real scalar, or an input is not a float.

    >>> grad(lambda x: x ** 3)(2.0).item()
    12.0
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)
    docs = "Gradient of {fun} with respect to positional argument(s) " + str(argnums) + ".\n\n{doc}"

    @wraps(fun, docs)
    @api_boundary
    def grad_f(*args: Any, **kwargs: Any) -> Any:
        value, g = both(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return grad_f


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """Like ``grad``, giving ``(value, gradient)``, or ``((value, aux), gradient)`` with ``has_aux``.

    >>> value, g = value_and_grad(lambda x: x ** 2)(3.0)
    >>> value.item() if hasattr(value, 'item') else value, g.item()
    (9.0, 6.0)
    """
    check_callable(fun)
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument to grad is deprecated in JAX and not supported")

    @wraps(fun, "Value and gradient of {fun} with respect to positional argument(s) " + str(argnums) + ".\n\n{doc}")
    @api_boundary
    def value_and_grad_f(*args: Any, **kwargs: Any) -> Any:
        _check_argnums(argnums, len(args))
        indices = as_indices(argnums, len(args))
        chosen = tuple(args[i] for i in indices)
        for x in chosen:
            _check_inputs(x, "grad", holomorphic, allow_int)

        def f(*xs: Any) -> Any:
            full = list(args)
            for i, x in zip(indices, xs, strict=True):
                full[i] = x
            return fun(*full, **kwargs)

        out, pullback, *aux = _vjp(f, chosen, has_aux)
        _check_scalar(out, holomorphic)
        grads = pullback(_one(aval_of(out)))
        g = grads[0] if isinstance(argnums, int) else grads
        return ((out, aux[0]) if has_aux else out), g

    return value_and_grad_f


def _one(aval: ShapedArray) -> Any:
    """The cotangent of a scalar with respect to itself, as weakly typed as it is."""
    weak = aval.weak_type and aval.dtype == aval_of(1.0).dtype
    return 1.0 if weak else np.ones((), aval.dtype)[()]


def _check_argnums(argnums: int | Sequence[int], count: int) -> None:
    needed = max((argnums,) if isinstance(argnums, int) else argnums) + 1
    if needed > count:
        raise TypeError(
            f"differentiating with respect to {argnums=} requires at least {needed} positional "
            "arguments to be passed by "
            f"the caller, but got only {count} positional arguments."
        )


def _check_inputs(tree: Any, name: str, holomorphic: bool, allow_int: bool) -> None:
    check_arrays(tree, f"an argument of {name}: ")
    for path, x in tree_leaves_with_path(tree):
        aval = aval_of(x)
        where = f" (at {keystr(path)})" if path else ""
        if holomorphic and not dtypes.is_complex(aval.dtype):
            raise TypeError(
                f"{name} with holomorphic=True requires inputs with complex dtype, but got {aval.dtype.name}{where}."
            )
        if holomorphic:
            continue
        if dtypes.is_extended(aval.dtype) or (not dtypes.is_inexact(aval.dtype) and not allow_int):
            raise TypeError(
                f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
                "np.inexact), but got "
                f"{dtypes.full_name(aval.dtype)}. If you want to use Boolean- or integer-valued inputs, use vjp or set "
                f"allow_int to True. The input{where} is {aval}."
            )
        if dtypes.is_complex(aval.dtype):
            raise TypeError(
                f"{name} requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got "
                f"{aval.dtype.name}{where}. For holomorphic differentiation, pass holomorphic=True. "
                "For differentiation of "
                "non-holomorphic functions involving complex inputs, use vjp directly."
            )


def _check_scalar(out: Any, holomorphic: bool) -> None:
    leaves, tree = tree_flatten(out)
    if len(leaves) != 1 or tree.node_type is not None:
        raise TypeError(f"Gradient only defined for scalar-output functions. Output was a pytree of structure {tree}.")
    aval = aval_of(out)
    if aval.shape != ():
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output had shape: {aval.shape}. It is {aval}: sum or "
            "average it, or use jacrev or vjp."
        )
    if holomorphic != dtypes.is_complex(aval.dtype) or not dtypes.is_inexact(aval.dtype):
        need, kind = ("complex", "complexfloating") if holomorphic else ("real", "floating")
        raise TypeError(
            f"grad {'with holomorphic=True ' if holomorphic else ''}requires {need}-valued outputs "
            "(output dtype that is "
            f"a sub-dtype of np.{kind}), but got {aval.dtype.name}. The output is {aval}; for differentiation of "
            "functions with integer or complex outputs, use vjp directly."
        )


@api_boundary
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Any] = ()) -> Any:
    """``fun(*primals)`` and the function from cotangents of its output to cotangents of ``primals``.

    >>> y, f_vjp = vjp(lambda x: x * x, 3.0)
    >>> f_vjp(1.0)[0].item()
    6.0
    """
    check_callable(fun)
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument to vjp is deprecated in JAX and not supported")
    return _vjp(fun, primals, has_aux)


def _vjp(fun: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool) -> tuple[Any, ...]:
    check_arrays(primals, "primals")
    leaves, in_tree = tree_flatten((primals, {}))
    flat = (FlatAux if has_aux else Flat)(fun, in_tree)
    differentiable = [dtypes.is_inexact(aval_of(x).dtype) for x in leaves]
    outs, linearized = linearize_flat(flat, leaves, differentiable)
    aux = _drop_tangents(flat.aux) if isinstance(flat, FlatAux) else None
    assert flat.out_tree is not None
    pullback = VJP(linearized, leaves, tree_structure(primals), flat.out_tree)
    out = flat.unflatten(outs)
    return (out, pullback, aux) if has_aux else (out, pullback)


def _drop_tangents(aux: Any) -> Any:
    """Auxiliary outputs are not differentiated: their tracers give way to their primal values."""
    leaves, tree = tree_flatten(aux)
    return tree_unflatten(tree, [getattr(x, "primal", x) for x in leaves])


class VJP:
    """The pullback that ``vjp`` returns: a linear function of the output's cotangents, as a pytree like the output."""

    def __init__(self, linearized: Linearized, primals: Sequence[Any], in_tree: PyTreeDef, out_tree: PyTreeDef) -> None:
        self._linearized = linearized
        self._in_avals = [aval_of(p) for p in primals]
        self._in_tree = in_tree
        self._out_tree = out_tree

    @api_boundary
    def __call__(self, cotangents: Any) -> Any:
        lin = self._linearized
        cts = [ct for ct, nz in zip(self._check(cotangents), lin.nonzero_out, strict=True) if nz]
        inputs = [UndefPrimal(v.aval) for v in lin.jaxpr.jaxpr.invars]
        results = iter(backward_pass(lin.jaxpr.jaxpr, lin.jaxpr.consts, inputs, cts))
        grads = [
            next(results) if nz else Zero(a.to_tangent_aval())
            for nz, a in zip(lin.nonzero_in, self._in_avals, strict=True)
        ]
        return tree_unflatten(self._in_tree, map(_materialize, grads))

    def _check(self, cotangents: Any) -> list[Any]:
        leaves, tree = tree_flatten(cotangents)
        if tree != self._out_tree:
            where = "; ".join(differences(tree, self._out_tree))
            raise ValueError(
                f"unexpected tree structure of argument to vjp function: got {tree}, but expected to "
                f"match {self._out_tree} ({where})"
            )
        return [_as_cotangent(ct, aval) for ct, aval in zip(leaves, self._linearized.out_avals, strict=True)]


def _as_cotangent(ct: Any, aval: ShapedArray) -> Any:
    got, want = aval_of(ct), aval.to_tangent_aval()
    if got.shape != want.shape:
        raise ValueError(
            f"Shape of cotangent input to vjp pullback function {got.shape} must be the same as the "
            "shape of corresponding "
            f"primal input {want.shape}: got {got}, expected {want}."
        )
    if got.dtype != want.dtype and not (got.weak_type and dtypes.is_inexact(got.dtype)):
        raise ValueError(
            f"Unexpected type of cotangent input to vjp pullback function: got {got}, expected "
            f"{want}. Cast it with astype."
        )
    return convert_element_type(ct, want.dtype) if got.dtype != want.dtype or got.weak_type > want.weak_type else ct


def _materialize(ct: Any) -> Any:
    if type(ct) is Zero and ct.aval.dtype == dtypes.float0:
        return np.zeros(ct.aval.shape, dtypes.float0)
    return instantiate(ct)


@api_boundary
def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """``fun(*primals)`` and its directional derivative along ``tangents``, by forward mode.

    >>> y, t = jvp(lambda x: x * x, (3.0,), (1.0,))
    >>> float(t)
    6.0
    """
    check_callable(fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            "primal and tangent arguments to jvp must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}."
        )
    check_arrays(primals, "primals")
    leaves, tree = tree_flatten(tuple(primals))
    tangent_leaves, tangent_tree = tree_flatten(tuple(tangents))
    if tree != tangent_tree:
        raise TypeError(
            "primal and tangent arguments to jvp must have the same tree structure; primals have tree structure "
            f"{tree} whereas tangents have tree structure {tangent_tree}."
        )
    given = [_as_tangent(p, t) for p, t in zip(leaves, tangent_leaves, strict=True)]
    flat = (FlatAux if has_aux else Flat)(fun, tree_structure((tuple(primals), {})))
    outs, out_tangents = jvp_flat(flat, leaves, given)
    pair = flat.unflatten(outs), flat.unflatten([_materialize(t) for t in out_tangents])
    return (*pair, _drop_tangents(flat.aux)) if isinstance(flat, FlatAux) else pair


def _as_tangent(primal: Any, tangent: Any) -> Any:
    want, got = aval_of(primal).to_tangent_aval(), aval_of(tangent)
    if want.dtype == dtypes.float0 and got.dtype == dtypes.float0:
        return Zero(want)
    if got.dtype != want.dtype and not (got.weak_type and dtypes.is_inexact(got.dtype)):
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in case of "
            "int/bool primal dtype "
            f"the tangent dtype must be float0. Got primal {aval_of(primal)} and so expected tangent dtype "
            f"{dtypes.full_name(want.dtype)}, but got tangent {got} instead."
        )
    if got.shape != want.shape:
        raise ValueError(
            f"jvp called with different primal and tangent shapes; Got primal shape {want.shape} and "
            f"tangent shape as {got.shape}"
        )
    return (
        convert_element_type(tangent, want.dtype)
        if got.dtype != want.dtype or got.weak_type > want.weak_type
        else tangent
    )


@api_boundary
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``fun(*primals)`` and the linear function of tangents that approximates ``fun`` there; it can be called often.

    >>> y, f_jvp = linearize(lambda x: x * x, 3.0)
    >>> f_jvp(1.0).item()
    6.0
    """
    check_callable(fun)
    check_arrays(primals, "primals")
    leaves, in_tree = tree_flatten((primals, {}))
    flat = (FlatAux if has_aux else Flat)(fun, in_tree)
    differentiable = [dtypes.is_inexact(aval_of(x).dtype) for x in leaves]
    outs, lin = linearize_flat(flat, leaves, differentiable)
    primal_tree = tree_structure(primals)

    @api_boundary
    def f_jvp(*tangents: Any) -> Any:
        given, tree = tree_flatten(tangents)
        if tree != primal_tree:
            raise TypeError(f"linearized function called with tangents of structure {tree}, expected {primal_tree}")
        given = [_as_tangent(p, t) for p, t in zip(leaves, given, strict=True)]
        chosen = [instantiate(t) for t, nz in zip(given, lin.nonzero_in, strict=True) if nz]
        results = iter(eval_jaxpr(lin.jaxpr.jaxpr, lin.jaxpr.consts, chosen))
        zeros = [Zero(a.to_tangent_aval()) for a in lin.out_avals]
        return flat.unflatten(
            [_materialize(next(results) if nz else z) for nz, z in zip(lin.nonzero_out, zeros, strict=True)]
        )

    out = flat.unflatten(outs)
    return (out, f_jvp, _drop_tangents(flat.aux)) if isinstance(flat, FlatAux) else (out, f_jvp)
