"""``export``: from a jitted function to its program as data."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from polyax.api.jit import jit
from polyax.api.stages import Traced, Wrapped
from polyax.api.vjp import vjp
from polyax.control.inner.programs import with_ends
from polyax.export import programs
from polyax.export.calling import exporting_for, is_symbolic
from polyax.export.dims import DimExpr, UnexpectedDimVar, evaluated
from polyax.export.exported import DisabledSafetyCheck, Exported, Shardings, assembled
from polyax.export.plain import plain
from polyax.export.scopes import SymbolicScope
from polyax.export.solving import Solution, argument_names
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.dtypes import float0, is_inexact
from polyax.ir.jaxpr import ClosedJaxpr, eval_jaxpr
from polyax.meshes.sharding import NamedSharding
from polyax.runtime.arrays.devices import default_backend
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.runtime.running.meshed import Layouts
from polyax.trace.flat import name_of
from polyax.trace.recording import trace_to_jaxpr
from polyax.trace.tree import tree_flatten, tree_structure

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10


def default_export_platform() -> str:
    """The platform that functions are exported for if none is named: that of the default device."""
    return default_backend()


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Any = None,
) -> Callable[..., Exported]:
    """A function that exports ``fun_jit`` for its arguments (arrays, or ``ShapeDtypeStruct``), as an ``Exported``.

    The program is that of the function, not that of a device: the same file runs on all platforms that it names, and
    with shapes from ``symbolic_shape`` for all sizes.

    Args:
      fun_jit: what ``jit`` gives, or a function of Polyax.
      platforms: those that it may be called on; by default that of the default device.
      disabled_checks: checks that its calls leave out.

    Raises:
      ValueError: ``fun_jit`` isn't jitted, or symbolic shapes are of different scopes.
      NotImplementedError: the program calls Python functions while it runs.

    >>> import polyax
    >>> from polyax import export
    >>> (b,) = export.symbolic_shape("b")
    >>> exported = export.export(polyax.jit(lambda x: x.sum() / x.shape[0]))(
    ...     polyax.ShapeDtypeStruct((b,), "float32"))
    >>> exported.in_avals
    (ShapedArray(float32[b]),)
    >>> exported.call(polyax.numpy.arange(4.0)).item()
    1.5
    """
    if not isinstance(fun_jit, Wrapped) and str(getattr(fun_jit, "__module__", "")).startswith("polyax."):
        fun_jit = jit(fun_jit)  # as many of JAX's own functions are
    if not isinstance(fun_jit, Wrapped):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {fun_jit}")
    if _override_lowering_rules:
        raise NotImplementedError("export: programs aren't lowered, so there are no rules to override")

    @api_boundary
    def do_export(*args_specs: Any, **kwargs_specs: Any) -> Exported:
        check_scopes(name_of(fun_jit), args_specs, kwargs_specs)
        names = tuple(platforms or (default_export_platform(),))
        before = exporting_for.set(names)
        try:
            made = fun_jit.trace(*args_specs, **kwargs_specs)
        finally:
            exporting_for.reset(before)
        return _exported(made, names, tuple(disabled_checks))

    return do_export


def _convention() -> int:
    """The one that the flag asks for; there is no difference between them."""
    lowest, highest = minimum_supported_calling_convention_version, maximum_supported_calling_convention_version
    asked = config.get("export_calling_convention_version")
    if not lowest <= asked <= highest:
        raise ValueError(
            f"The requested export calling convention version {asked} is outside the range of supported versions "
            f"[{lowest}..{highest}]"
        )
    return asked


def check_scopes(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises ValueError unless all dimension variables are of one scope."""
    leaves, tree = tree_flatten((args, kwargs))
    seen: tuple[SymbolicScope, str] | None = None
    for where, x in zip(argument_names(tree), leaves, strict=True):
        for d in getattr(x, "shape", ()):
            if isinstance(d, DimExpr):
                scope, first = seen = seen or (d.scope, where)
                scope.check_same(d, f"when exporting {name}", f"current (from {first}) ", where)


def _exported(traced: Traced, platforms: tuple[str, ...], checks: tuple[DisabledSafetyCheck, ...]) -> Exported:
    where = traced._parts.staged.where
    closed = traced.jaxpr
    shardings, devices = ((None,) * len(closed.in_avals), (None,) * len(closed.out_avals)), 1
    if isinstance(where, Layouts):
        shardings = tuple(map(_abstract, (where.ins[len(closed.consts) :], where.outs)))
        devices = where.mesh.size
    trees = traced.in_tree, traced.out_tree
    ends = closed.in_avals, closed.out_avals
    return _of_program(closed, traced.fun_name, ends, trees, (shardings, devices, platforms, checks))


def _abstract(shardings: Sequence[Any]) -> Shardings:
    """Without devices."""
    return tuple([None if s is None else NamedSharding(s.mesh.abstract_mesh, s.spec) for s in shardings])


def _of_program(closed: ClosedJaxpr, name: str, ends: Any, trees: Any, where: Any) -> Exported:
    """An ``Exported`` whose arguments and results have the types ``ends``; those without information are no part of
    the program."""
    shardings, devices, platforms, checks = where
    _check_variables(ends, trees[0])
    invars = [v for v in closed.jaxpr.invars if v.aval.dtype != float0]
    closed = with_ends(closed, invars)
    module = programs.dumps(plain(closed), _constraints(closed.in_avals))
    return assembled(
        module,
        name=name,
        avals=ends,
        trees=trees,
        shardings=shardings,
        nr_devices=devices,
        platforms=platforms,
        effects=sorted(closed.effects, key=str),
        checks=checks,
        convention=_convention(),
        get_vjp=functools.cache(lambda e: _pullback(closed, e)),
    )


def _check_variables(ends: Any, in_tree: Any) -> None:
    """Raises unless calls will tell the values of all dimension variables: ValueError, and KeyError for those that no
    argument has."""
    ins, outs = ends
    if not is_symbolic((*ins, *outs)):
        return
    env = Solution(ins, ins, in_tree).env
    try:
        for aval in outs:
            for d in aval.shape:
                evaluated(d, env)
    except UnexpectedDimVar as e:
        raise KeyError(str(e)) from None


def _constraints(avals: Sequence[ShapedArray]) -> list[str]:
    dims = [d for a in avals for d in a.shape if isinstance(d, DimExpr)]
    return [c.text for c in dims[0].scope.constraints] if dims else []


def _pullback(closed: ClosedJaxpr, e: Exported) -> Exported:
    """The exported pullback of an exported function."""
    count = len(e.in_avals)

    varied = [n for n, a in enumerate(e.in_avals) if is_inexact(a.dtype)]
    real = [n for n, a in enumerate(e.out_avals) if a.dtype != float0]

    def fun_vjp(*leaves: Any) -> list[Any]:
        def of_varied(*xs: Any) -> list[Any]:
            args = [*leaves[:count]]
            for n, x in zip(varied, xs, strict=True):
                args[n] = x
            return eval_jaxpr(closed.jaxpr, closed.consts, [args[n] for n in e.module_kept_var_idx])

        pull = vjp(of_varied, *(leaves[n] for n in varied))[1]
        return list(pull([leaves[count + n] for n in real]))

    avals = [*e.in_avals, *(a.to_tangent_aval() for a in e.out_avals)]
    made = trace_to_jaxpr(fun_vjp, avals, name=f"{e.fun_name}_vjp")
    trees = tree_structure(((0,) * len(avals), {})), tree_structure((0,) * count)
    shardings = (*e._in_named_shardings, *e._out_named_shardings), e._in_named_shardings
    where = shardings, e.nr_devices, e.platforms, e.disabled_safety_checks
    ends = avals, [a.to_tangent_aval() for a in e.in_avals]
    return _of_program(made, f"{e.fun_name}_vjp", ends, trees, where)
