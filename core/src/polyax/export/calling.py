"""Calls of exported functions: checks, the program for the shapes and the mesh of the call, and its derivative."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from polyax.api.shardings import constrained
from polyax.control.calls.custom_vjp import custom_vjp
from polyax.control.calls.jit import call as bind_call
from polyax.export import refining
from polyax.export.dims import DimExpr, evaluated
from polyax.export.solving import Solution, check_types
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.dtypes import float0
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.meshes.axes import MeshAxes
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding
from polyax.ops.basis import convert
from polyax.runtime.arrays.array import is_concrete
from polyax.runtime.arrays.devices import default_backend
from polyax.trace.paths import equality_errors_pytreedef, keystr
from polyax.trace.tracer import Tracer
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten
from polyax.transforms.memo import kept

exporting_for: ContextVar[tuple[str, ...]] = ContextVar("exporting_for", default=())
"""The platforms that a function is being exported for: what it calls must have been exported for all of them."""
Exported = Any
"""The class of that name, which is made of what is here."""


def call(e: Exported, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The results of ``e``, differentiable as far as its derivatives were saved."""
    leaves, tree = tree_flatten((args, kwargs))
    if tree != e.in_tree:
        raise _other_structure(e, tree)
    _check_platform(e, leaves)
    return tree_unflatten(e.out_tree, _function(e)(*leaves))


def _other_structure(e: Exported, tree: PyTreeDef) -> ValueError:
    lines = [
        f"   - {('args', 'kwargs')[path[0].idx]}{keystr(path[1:])} is a {given} in the invocation and a {seen} when "
        f"exported, so {why}.\n"
        for path, given, seen, why in equality_errors_pytreedef(tree, e.in_tree)
    ]
    return ValueError(
        "The invocation args and kwargs must have the same pytree structure as when the function "
        f"'{e.fun_name}' was exported, but they have the following structural differences:\n" + "\n".join(lines)
    )


def _check_platform(e: Exported, leaves: Sequence[Any]) -> None:
    if any(str(c) == "platform" for c in e.disabled_safety_checks):
        return
    placed = {d.platform for x in leaves if is_concrete(x) and x.committed for d in x.devices()}
    used = placed or set(exporting_for.get()) or {default_backend()}
    if not used <= set(e.platforms):
        raise ValueError(
            f"Function '{e.fun_name}' was exported for platforms '{e.platforms}' but it is used on "
            f"'{tuple(sorted(used))}'. Export it with platforms=(..., '{min(used)}'), or disable the check with "
            "disabled_checks=[DisabledSafetyCheck.platform()]."
        )


def _function(e: Exported) -> Any:
    """The function of the leaves, with its derivative; made once."""
    found = e.__dict__.get("_flat")
    if found is None:
        found = e.__dict__["_flat"] = _with_derivative(e)
    return found


def _with_derivative(e: Exported) -> Any:
    def flat(*leaves: Any) -> list[Any]:
        return _run(e, leaves)

    def forward(*leaves: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return flat(*leaves), leaves

    def backward(leaves: tuple[Any, ...], cts: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(_function(e.vjp())(*leaves, *cts))

    flat.__name__ = e.fun_name
    function = custom_vjp(flat)
    function.defvjp(forward, backward)
    return function


def _run(e: Exported, leaves: Sequence[Any]) -> list[Any]:
    avals = [aval_of(x) for x in leaves]
    program = _program(e, avals)
    shardings = e._in_named_shardings, e._out_named_shardings
    mesh = _mesh(e, leaves)
    if mesh is not None:
        whole = program
        program = kept(whole, ("exported on", mesh), lambda: refining.on_mesh(whole, mesh))
        shardings = tuple(on_mesh_of(end, mesh) for end in shardings)
    placed = constrained(leaves, shardings[0]) if e.nr_devices > 1 else leaves
    given = [_typed(placed[n], a) for n, a in zip(e.module_kept_var_idx, program.in_avals, strict=True)]
    params = {"name": e.fun_name, "donated": (), "inline": False, "keep_unused": False, "device": None}
    outs = _completed(e, avals, bind_call(program, given, **params))
    return constrained(outs, shardings[1]) if e.nr_devices > 1 else outs


def _completed(e: Exported, avals: Sequence[ShapedArray], outs: Sequence[Any]) -> list[Any]:
    """The results with those that hold no information, which the program leaves out, and of the types that it gives."""
    if len(outs) == len(e.out_avals):
        return [_typed(y, a) for y, a in zip(outs, e.out_avals, strict=True)]
    env, given = _sizes(e, avals), iter(outs)
    shapes = [tuple([evaluated(d, env) for d in a.shape]) for a in e.out_avals]
    return [
        np.zeros(shape, float0) if a.dtype == float0 else _typed(next(given), a)
        for a, shape in zip(e.out_avals, shapes, strict=True)
    ]


def _sizes(e: Exported, avals: Sequence[ShapedArray]) -> dict[str, Any]:
    """The values of dimension variables for arguments of these types."""
    return Solution(e.in_avals, avals, e.in_tree).env if e.uses_global_constants else {}


def _program(e: Exported, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """For arguments of these types."""
    check_types(e.in_avals, avals, e.in_tree)
    if not e.uses_global_constants:
        return e.program
    env = _sizes(e, avals)
    key = "exported for", tuple(sorted(env.items()))
    return kept(e.program, key, lambda: refining.with_sizes(e.program, env))


def _typed(x: Any, aval: ShapedArray) -> Any:
    found = aval_of(x)
    return x if found.weak_type == aval.weak_type else convert(x, aval.dtype, aval.weak_type)


def is_symbolic(avals: Sequence[ShapedArray]) -> bool:
    return any(isinstance(d, DimExpr) for a in avals for d in a.shape)


def _mesh(e: Exported, leaves: Sequence[Any]) -> Mesh | None:
    """The mesh of a call of a program for several devices."""
    if e.nr_devices == 1:
        return None
    found = [x.sharding.mesh for x in leaves if is_concrete(x) and isinstance(x.sharding, NamedSharding)]
    traced = any(isinstance(x, Tracer) for x in leaves)
    mesh = next((_with_axes(e, m) for m in found if isinstance(m, Mesh) and m.size == e.nr_devices), None)
    if mesh is None and not (traced and not found):
        raise ValueError(
            f"Function {e.fun_name} was exported for {e.nr_devices} devices and is called in a context with "
            f"{found[0].size if found else 1} devices, which is not allowed. Put its arguments on a mesh, as "
            "in_shardings_jax(mesh) says."
        )
    return mesh


def _with_axes(e: Exported, mesh: Mesh) -> Mesh:
    """The devices of ``mesh``, along the axes that the function was exported for."""
    meant = next((s.mesh for s in (*e._in_named_shardings, *e._out_named_shardings) if s is not None), mesh)
    if meant.axes == mesh.axes:
        return mesh
    return Mesh.of_axes(meant, mesh.devices)


def on_mesh_of(shardings: Sequence[NamedSharding | None], mesh: MeshAxes) -> tuple[NamedSharding | None, ...]:
    """The shardings on ``mesh``.

    Raises:
      ValueError: its axes differ from those of the mesh that they are of.
    """
    for s in shardings:
        if s is not None and s.mesh.axes and s.mesh.axes != mesh.axes:
            raise ValueError(f"NamedSharding new mesh {mesh} does not match the mesh used for export {s.mesh}.")
    return tuple([None if s is None else NamedSharding(mesh, s.spec) for s in shardings])  # type: ignore[arg-type]
