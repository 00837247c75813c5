"""Pullbacks: ``vjp fwd_and_bwd``, and the cotangents that they take and give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.api.arguments import as_array, check_int_or_tuple, restrict
from polyax.api.jit import jit
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import ambient
from polyax.meshes.current import mesh_in_force, set_mesh
from polyax.meshes.explicit import seen
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding
from polyax.ops.basis import convert_element_type
from polyax.ops.zeros import instantiate
from polyax.runtime.arrays.array import is_concrete
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.flat import Flat, FlatAux, check_arrays, check_callable
from polyax.trace.paths import differences
from polyax.trace.register import register_pytree_node_class
from polyax.trace.symbolic import UndefPrimal, Zero
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_structure, tree_unflatten
from polyax.transforms.jvp import JVPTracer
from polyax.transforms.linearize import Linearized, linearize_flat
from polyax.transforms.transpose import backward_pass


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
    return vjp_tree(fun, primals, has_aux)


def vjp_tree(fun: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool) -> tuple[Any, ...]:
    check_arrays(primals, "primals")
    leaves, in_tree = tree_flatten((primals, {}))
    flat = (FlatAux if has_aux else Flat)(fun, in_tree)
    differentiable = [dtypes.is_inexact(aval_of(x).dtype) for x in leaves]
    outs, linearized = linearize_flat(flat, leaves, differentiable)
    aux = drop_tangents(flat.aux) if isinstance(flat, FlatAux) else None
    assert flat.out_tree is not None
    avals = tuple(map(aval_of, leaves))
    mesh = _explicit_mesh((*leaves, *linearized.residuals)) if seen.any else None
    pullback = VJP(linearized, avals, tree_structure(primals), flat.out_tree, mesh)
    out = flat.unflatten(list(map(as_array, outs)))
    return (out, pullback, aux) if has_aux else (out, pullback)


def _explicit_mesh(values: Sequence[Any]) -> Mesh | None:
    """The mesh with explicit axes that arrays lie on, where none is in force."""
    if ambient.trace is not None or mesh_in_force() is not None:
        return None
    layouts = [x.sharding for x in values if is_concrete(x) and x._device is None]
    meshes = [s.mesh for s in layouts if isinstance(s, NamedSharding) and isinstance(s.mesh, Mesh)]
    return next((m for m in meshes if m.explicit_axes), None)


def drop_tangents(aux: Any) -> Any:
    """Auxiliary outputs without the tracers of the transformation that has just ended: its inner values remain."""
    leaves, tree = tree_flatten(aux)
    return tree_unflatten(tree, [as_array(x.primal) if _ended(x) else x for x in leaves])


def _ended(x: Any) -> bool:
    return isinstance(x, JVPTracer) and not x._trace.alive


class VJP:
    """The pullback that ``vjp`` returns: a linear function of the output's cotangents, as a pytree like the output.

    A pytree itself, of the residuals: what the backward pass needs of the forward pass.
    """

    def __init__(
        self,
        linearized: Linearized,
        in_avals: tuple[ShapedArray, ...],
        in_tree: PyTreeDef,
        out_tree: PyTreeDef,
        mesh: Mesh | None = None,
    ) -> None:
        self._linearized = linearized
        self._in_avals = in_avals
        self._in_tree = in_tree
        self._out_tree = out_tree
        self._mesh = mesh
        """The mesh that types of cotangents tell of, if none is in force where the pullback is called."""

    @api_boundary
    def __call__(self, cotangents: Any) -> Any:
        if self._mesh is None or ambient.trace is not None or mesh_in_force() is not None:
            return self._pulled_back(cotangents)
        with set_mesh(self._mesh):
            return self._pulled_back(cotangents)

    def _pulled_back(self, cotangents: Any) -> Any:
        lin = self._linearized
        cts = [ct for ct, nz in zip(self._check(cotangents), lin.nonzero_out, strict=True) if nz]
        inputs = [UndefPrimal(v.aval) for v in lin.jaxpr.jaxpr.invars]
        results = iter(backward_pass(lin.jaxpr.jaxpr, lin.jaxpr.consts, inputs, cts))
        grads = [
            next(results) if nz else Zero(a.to_tangent_aval())
            for nz, a in zip(lin.nonzero_in, self._in_avals, strict=True)
        ]
        return tree_unflatten(self._in_tree, map(materialize, grads))

    def _check(self, cotangents: Any) -> list[Any]:
        leaves, tree = tree_flatten(cotangents)
        if tree != self._out_tree:
            where = "; ".join(differences(tree, self._out_tree))
            raise ValueError(
                f"unexpected tree structure of argument to vjp function: got {tree}, but expected to "
                f"match {self._out_tree} ({where})"
            )
        return [as_cotangent(ct, aval) for ct, aval in zip(leaves, self._linearized.out_avals, strict=True)]

    def tree_flatten(self) -> Any:
        lin = self._linearized
        return lin.residuals, (lin.jaxpr.jaxpr, lin.nonzero_in, lin.nonzero_out, lin.out_avals, *self._rest())

    def _rest(self) -> tuple[Any, ...]:
        return self._in_avals, self._in_tree, self._out_tree, self._mesh

    @classmethod
    def tree_unflatten(cls, aux: Any, residuals: Sequence[Any]) -> VJP:
        jaxpr, nonzero_in, nonzero_out, out_avals, *rest = aux
        return cls(Linearized(ClosedJaxpr(jaxpr, residuals), nonzero_in, nonzero_out, out_avals), *rest)


register_pytree_node_class(VJP)


def as_cotangent(ct: Any, aval: ShapedArray) -> Any:
    """``ct`` as a cotangent of a value of type ``aval``.

    Raises:
      ValueError: shape or dtype is another.
    """
    got, want = aval_of(ct), aval.to_tangent_aval()
    if want.dtype == dtypes.float0 and got.shape == want.shape and not dtypes.is_inexact(got.dtype):
        return Zero(want)
    if got.shape != want.shape or not fits(got, want):
        raise ValueError(
            f"unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got {got}, but expected {want} "
            f"because the corresponding output of the differentiated function had JAX type {aval}"
        )
    return convert_element_type(ct, want.dtype) if got.dtype != want.dtype or got.weak_type > want.weak_type else ct


def fits(got: ShapedArray, want: ShapedArray) -> bool:
    """Whether a tangent of dtype ``got`` may stand for one of ``want``: Python scalars adapt, but stay real."""
    if got.dtype == want.dtype:
        return True
    loses = dtypes.is_complex(got.dtype) and not dtypes.is_complex(want.dtype)
    return got.weak_type and dtypes.is_inexact(got.dtype) and dtypes.is_inexact(want.dtype) and not loses


def materialize(ct: Any) -> Any:
    """``ct`` as an array; those of integers are NumPy arrays of ``float0``."""
    if type(ct) is Zero and ct.aval.dtype == dtypes.float0:
        return np.zeros(ct.aval.shape, dtypes.float0)
    return as_array(instantiate(ct))


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The forward and the backward pass of ``fun`` as two functions, each of which is compiled if ``jitted``.

    Returns:
      ``fwd(*args) -> (out, residuals)`` (and the auxiliary output), and ``bwd(residuals, cotangent)``, which gives the
      cotangents of the arguments ``argnums``.

    >>> fwd, bwd = fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> out, residuals = fwd(2.0, 3.0)
    >>> [ct.item() for ct in bwd(residuals, 1.0)]
    [3.0, 2.0]
    """
    check_callable(fun)
    check_int_or_tuple("argnums", argnums)

    def fwd(*args: Any, **kwargs: Any) -> Any:
        f, chosen = restrict(fun, argnums, args, kwargs)
        return vjp_tree(f, chosen, has_aux)

    def bwd(residuals: VJP, cotangent: Any) -> Any:
        grads = residuals(cotangent)
        return grads[0] if isinstance(argnums, int) else grads

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
