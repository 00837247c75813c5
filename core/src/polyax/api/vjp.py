"""Pullbacks: ``vjp fwd_and_bwd``, and the cotangents that they take and give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyax.api.arguments import as_array, check_int_or_tuple, restrict
from polyax.api.jit import jit
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of, same_type
from polyax.ir.jaxpr import Jaxpr
from polyax.ir.primitive import ambient
from polyax.ir.refs import is_ref, met
from polyax.meshes.current import mesh_in_force, set_mesh
from polyax.meshes.explicit import cotangent_type, seen
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding
from polyax.ops.basis import convert, convert_element_type
from polyax.ops.zeros import instantiate
from polyax.runtime.arrays.array import is_concrete
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.context import transformed
from polyax.trace.flat import Flat, FlatAux, check_arrays, check_callable, name_of
from polyax.trace.paths import differences
from polyax.trace.register import register_pytree_node_class
from polyax.trace.symbolic import UndefPrimal, Zero
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_leaves, tree_structure, tree_unflatten
from polyax.transforms.jvp import JVPTracer
from polyax.transforms.linearize import Linearized, linearize_flat
from polyax.transforms.transpose import backward_pass
from polyax.transforms.wanted import DidntWant, DontWant, GradRef, GradValue, NotNeeded, is_overwritten, reached_from


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
    with transformed("jvp"):
        outs, linearized = linearize_flat(flat, leaves, differentiable)
    aux = drop_tangents(flat.aux) if isinstance(flat, FlatAux) else None
    assert flat.out_tree is not None
    avals = tuple(map(aval_of, leaves))
    mesh = _explicit_mesh((*leaves, *linearized.residuals)) if seen.any else None
    kept = split(linearized.residuals, [tree_flatten(x) for x in primals])
    pullback = VJP(LinearProgram.of(linearized, fun), *kept, avals, tree_structure(primals), flat.out_tree, mesh)
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


class LinearProgram(NamedTuple):
    """A linearized function without its residuals."""

    jaxpr: Jaxpr
    nonzero_in: tuple[bool, ...]
    nonzero_out: tuple[bool, ...]
    out_avals: tuple[ShapedArray, ...]
    name: str
    """Of the function, for error texts."""

    @classmethod
    def of(cls, linearized: Linearized, fun: Callable[..., Any]) -> LinearProgram:
        told = linearized.nonzero_in, linearized.nonzero_out, linearized.out_avals
        return cls(linearized.jaxpr.jaxpr, *told, name_of(fun))


class VJP:
    """The pullback that ``vjp`` returns: a linear function of the output's cotangents, as a pytree like the output.

    A pytree itself, of the residuals: what the backward pass needs of the forward pass.

    Attributes:
      args_res: for each argument itself where it is a residual, the tuple of its leaves if it is a pytree, and
        ``NotNeeded()`` in place of the others. Values put there are those that the backward pass uses.
      opaque_residuals: all other residuals.

    >>> x, y = np.float32(2), np.array([3, 4], np.float32)
    >>> _, f_vjp = vjp(lambda x, y: x * y, x, y)
    >>> f_vjp.args_res = [x, 10 * y]
    >>> f_vjp(y)[0].item()
    250.0
    """

    def __init__(
        self,
        linear: LinearProgram,
        args_res: list[Any],
        opaque_residuals: list[Any],
        places: Sequence[int],
        in_avals: tuple[ShapedArray, ...],
        in_tree: PyTreeDef,
        out_tree: PyTreeDef,
        mesh: Mesh | None = None,
    ) -> None:
        self._linear = linear
        self.args_res = args_res
        self.opaque_residuals = opaque_residuals
        self._places = places
        """Of each residual the place among the leaves of ``args_res``, followed by ``opaque_residuals``."""
        self._in_avals = in_avals
        self.in_tree = in_tree
        self.out_tree = out_tree
        self._mesh = mesh
        """The mesh that types of cotangents tell of, if none is in force where the pullback is called."""

    @api_boundary
    def __call__(self, *cotangents: Any) -> Any:
        if len(cotangents) != 1:
            raise TypeError(
                f"The function returned by `jax.vjp` applied to {self._linear.name} was called with "
                f"{len(cotangents)} arguments, but functions "
                "returned by `jax.vjp` must be called with a single argument, which is a cotangent of the single value "
                f"that the differentiated function returned, whatever its structure: here {self.out_tree}"
            )
        return self._on_mesh(self._pulled_back, *cotangents)

    def _on_mesh(self, pull: Callable[..., Any], *args: Any) -> Any:
        """On the mesh of the forward pass, unless one is in force."""
        if self._mesh is None or ambient.trace is not None or mesh_in_force() is not None:
            return pull(*args)
        with set_mesh(self._mesh):
            return pull(*args)

    def _pulled_back(self, cotangents: Any) -> Any:
        if met.any and any(map(is_ref, self._in_avals)):
            return self._pull([GradValue()] * len(self._in_avals), cotangents)
        lin = self._linear
        cts = self._nonzero(cotangents)
        inputs = [UndefPrimal(v.aval) for v in lin.jaxpr.invars]
        results = iter(backward_pass(lin.jaxpr, self._residuals(), inputs, cts))
        grads = [next(results) if nz else zero for nz, zero in zip(lin.nonzero_in, self._zeros(), strict=True)]
        return tree_unflatten(self.in_tree, map(materialize, grads))

    def with_refs(self, *maybe_ct_refs: Any) -> Callable[[Any], Any]:
        """The pullback that adds cotangents to references.

        Args:
          maybe_ct_refs: for each argument a reference, to which its cotangent is added; ``polyax.ad.GradValue()``, the
            default, to give it as a value; or ``polyax.ad.DontWant()``.

        Raises:
          ValueError: these aren't of the structure of the arguments.

        >>> import polyax
        >>> total = polyax.new_ref(1.0)
        >>> vjp(lambda x: x * x, 3.0)[1].with_refs(total)(1.0)
        (GradRef(),)
        >>> print(total[...])
        7.0
        """
        targets, tree = tree_flatten(tuple(maybe_ct_refs), is_leaf=lambda x: isinstance(x, GradRef))
        if tree != self.in_tree:
            raise ValueError(f"with_refs takes an entry for each argument: {self.in_tree}, but got {tree}")
        return lambda cotangents: self._on_mesh(self._pull, targets, cotangents)

    @api_boundary
    def _pull(self, targets: Sequence[Any], cotangents: Any) -> Any:
        cts, lin = self._nonzero(cotangents), self._linear
        program, chosen = lin.jaxpr, [t for t, nz in zip(targets, lin.nonzero_in, strict=True) if nz]
        found = iter(pull_into(program, self._residuals(), chosen, cts))
        grads = [
            next(found) if nz else GradRef() if is_ref(t) else DidntWant() if t == DontWant() else materialize(zero)
            for nz, t, zero in zip(lin.nonzero_in, targets, self._zeros(), strict=True)
        ]
        return tree_unflatten(self.in_tree, grads)

    def _residuals(self) -> list[Any]:
        leaves = tree_leaves((self.args_res, self.opaque_residuals), is_leaf=lambda x: type(x) is NotNeeded)
        return [leaves[n] for n in self._places]

    def _nonzero(self, cotangents: Any) -> list[Any]:
        """The cotangents of results that depend on the arguments."""
        return [ct for ct, nz in zip(self._check(cotangents), self._linear.nonzero_out, strict=True) if nz]

    def _zeros(self) -> list[Zero]:
        return [Zero(cotangent_type(a.to_tangent_aval())) for a in self._in_avals]

    def _check(self, cotangents: Any) -> list[Any]:
        leaves, tree = tree_flatten(cotangents)
        if tree != self.out_tree:
            where = "; ".join(differences(tree, self.out_tree))
            raise ValueError(
                f"unexpected tree structure of argument to vjp function: got {tree}, but expected to "
                f"match {self.out_tree} ({where})"
            )
        return [as_cotangent(ct, aval) for ct, aval in zip(leaves, self._linear.out_avals, strict=True)]

    def tree_flatten(self) -> Any:
        rest = self._places, self._in_avals, self.in_tree, self.out_tree, self._mesh
        return (self.args_res, self.opaque_residuals), (self._linear, *rest)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Sequence[Any]) -> VJP:
        linear, *rest = aux
        return cls(linear, *children, *rest)


register_pytree_node_class(VJP)


def split(residuals: Sequence[Any], args: Sequence[tuple[list[Any], PyTreeDef]]) -> tuple[list[Any], list[Any], Any]:
    """Residuals that are arguments, in their places; the others; and where each is."""
    leaves = [x for own, _ in args for x in own]
    index = {id(x): n for n, x in enumerate(leaves)}
    needed = {id(x) for x in residuals}
    opaque = [x for x in residuals if id(x) not in index]
    others = iter(range(len(leaves), len(leaves) + len(opaque)))
    places = tuple(index[id(x)] if id(x) in index else next(others) for x in residuals)
    marked = [[x if id(x) in needed else NotNeeded() for x in own] for own, _ in args]
    whole = [own[0] if tree.is_leaf() else tuple(own) for own, (_, tree) in zip(marked, args, strict=True)]
    return whole, opaque, places


def pull_into(jaxpr: Jaxpr, consts: Sequence[Any], targets: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """For each input of a linear program its cotangent, or the word for where it went."""
    pairs = list(zip(jaxpr.invars, targets, strict=True))
    for v, t in pairs:
        _check_target(v.aval, t)
    refs = {v: t for v, t in pairs if is_ref(t) and not is_overwritten(jaxpr, v)}
    program = reached_from(jaxpr, [t != DontWant() for t in targets])
    results = backward_pass(program, consts, [UndefPrimal(v.aval) for v in jaxpr.invars], cts, refs)
    for (v, t), ct in zip(pairs, results, strict=True):
        if is_ref(t) and not is_ref(v.aval):
            add_to(t, ct)
        elif is_ref(t) and refs.get(v) is not t:
            add_to(t, refs.get(v))
    return [
        DidntWant() if t == DontWant() else GradRef() if is_ref(t) else materialize(ct)
        for t, ct in zip(targets, results, strict=True)
    ]


def add_to(ref: Any, ct: Any) -> None:
    """Adds a cotangent, or what a reference holds, to what a reference holds."""
    from polyax.control.refs.access import addupdate, freeze  # loaded with the first reference

    if ct is not None and type(ct) is not Zero:
        addupdate(ref, ..., freeze(ct))


def _check_target(aval: ShapedArray, target: Any) -> None:
    if is_ref(aval) and not is_ref(target) and target != DontWant():
        raise ValueError(
            f"the gradient with respect to an argument of type {aval} must be accumulated into a ref: give one for it "
            "with the `with_refs` method of the function that vjp returns."
        )
    if is_ref(target) and not same_type(aval, aval_of(target)):
        raise ValueError(f"Accumulator aval mismatch: expected {aval}, got {aval_of(target)}")


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
            f"unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got {got.str_short()}, but "
            f"expected {want.str_short()} because the corresponding output of the differentiated function had JAX type "
            f"{aval.str_short()}"
        )
    return convert_element_type(ct, want.dtype) if got.dtype != want.dtype or got.weak_type > want.weak_type else ct


def fits(got: ShapedArray, want: ShapedArray) -> bool:
    """Whether a tangent of dtype ``got`` may stand for one of ``want``: Python scalars adapt, but stay real."""
    if got.dtype == want.dtype:
        return True
    loses = dtypes.is_complex(got.dtype) and not dtypes.is_complex(want.dtype)
    return got.weak_type and dtypes.is_inexact(got.dtype) and dtypes.is_inexact(want.dtype) and not loses


def materialize(ct: Any) -> Any:
    """``ct`` as an array; zeros are as weakly typed as their arguments, and of integers NumPy arrays of ``float0``."""
    if type(ct) is Zero and ct.aval.dtype == dtypes.float0:
        return np.zeros(ct.aval.shape, dtypes.float0)
    weakly = type(ct) is Zero and ct.aval.weak_type
    return convert(instantiate(ct), ct.aval.dtype, weak_type=True) if weakly else as_array(instantiate(ct))


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
