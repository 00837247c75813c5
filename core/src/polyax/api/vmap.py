"""``vmap``: a function of examples becomes a function of batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.api.arguments import wraps
from polyax.ir.aval import ShapedArray, aval_of, is_array_like
from polyax.ir.refs import met
from polyax.meshes.axes import AbstractMesh
from polyax.meshes.explicit import cuts_of, mesh_of, seen
from polyax.meshes.spec import axes_of
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.calls import Signature, UserCall
from polyax.trace.context import transformed
from polyax.trace.flat import name_of
from polyax.trace.paths import flatten_axes, keystr, tree_leaves_with_path
from polyax.trace.tree import tree_leaves
from polyax.transforms.containers import batched, leaf_axes, mapped_kinds, of_elements
from polyax.transforms.vmap import AxisData, batch_flat, match_axis


@api_boundary
def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
) -> Callable[..., Any]:
    """Maps ``fun`` over axes of its arguments, without a loop.

    Args:
      fun: a function of pytrees of arrays.
      in_axes: for each positional argument the axis to map over, None to pass it whole; or a tree prefix of them.
        Keyword arguments are mapped over their axis 0.
      out_axes: where the mapped axis stands in the results.
      axis_name: a name for collectives.
      axis_size: the size of the mapped axis, if no argument tells it.
      spmd_axis_name: the mesh axis, or a tuple of them, along which the mapped axis is cut where ``fun`` constrains
        values to a sharding.
      sum_match: reserved, must be False.

    Raises:
      ValueError: the mapped axes have different sizes, or ``in_axes`` doesn't fit; both are shown.

    >>> import numpy as np
    >>> vmap(lambda x, y: x * y, in_axes=(0, None))(np.arange(3.), 2.0).tolist()
    [0.0, 2.0, 4.0]
    """
    signature = Signature(fun, "vmap")
    if sum_match:
        raise NotImplementedError("vmap: sum_match=True is not supported")
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    _check_axes(in_axes, out_axes)

    @wraps(fun, "Vectorized version of {fun}. Takes similar arguments with additional array axes.")
    @api_boundary
    def vmap_f(*args: Any, **kwargs: Any) -> Any:
        _check_count(in_axes, args)
        call = signature.split(args, kwargs)
        if met.any:
            call.refuse_aliases()
        axes = flatten_axes("vmap in_axes", call.in_tree, (in_axes, 0), tupled_args=True)
        if mapped_kinds:
            axes = leaf_axes("in_axes", call.in_tree, call.leaves, axes)
        avals = [_aval(call, x, a) for x, a in zip(call.leaves, axes, strict=True)]
        size = mapped_size("vmap", call, avals, axes, axis_size)
        dims = [None if v is None or a is None else a % v.ndim for v, a in zip(avals, axes, strict=True)]
        cut, mesh = _cut(avals, dims, spmd_axis_name) if seen.any else ((), None)
        axis = AxisData(size, axis_name, spmd_axis_name, cut, mesh)
        flat = call.flat()
        if mapped_kinds:
            flat.fun = of_elements(flat.fun, flat.in_tree, axes)
        with transformed("vmap"):
            outs, out_dims = batch_flat(flat, axis, call.leaves, dims)
        assert flat.out_tree is not None
        wanted = flatten_axes("vmap out_axes", flat.out_tree, out_axes)
        if mapped_kinds:
            wanted = leaf_axes("out_axes", flat.out_tree, outs, wanted)
        out = flat.unflatten([_place(axis, d, w, x, fun) for x, d, w in zip(outs, out_dims, wanted, strict=True)])
        return batched(out, flat.out_tree, wanted, size) if mapped_kinds else out

    return vmap_f


def _aval(call: UserCall, x: Any, axis: int | None) -> ShapedArray | None:
    """The type of an argument; None if it is passed whole and no array, which is the function's own matter."""
    return None if axis is None and not is_array_like(x) else call.aval(x)


def _cut(
    avals: Sequence[ShapedArray | None], dims: Sequence[int | None], spmd_name: Any
) -> tuple[tuple[Any, ...], AbstractMesh | None]:
    """Along which axes of which mesh types say that the mapped dimension is cut.

    Raises:
      ValueError: they differ.
    """
    mapped = [cuts_of(a)[d] for a, d in zip(avals, dims, strict=True) if a is not None and d is not None]
    if not any(mapped):
        return (), None
    if (other := next((names for names in mapped if names != mapped[0]), None)) is not None:
        one, two = (" ".join(map(str, names)) or "None" for names in (mapped[0], other))
        raise ValueError(
            "Mapped away dimension of inputs passed to vmap should be sharded the same. Got inconsistent axis specs: "
            f"{one} vs {two}"
        )
    if spmd_name is not None and axes_of(spmd_name) != mapped[0]:
        raise ValueError(
            "Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is allowed. Got "
            f"spmd_axis_name={axes_of(spmd_name)} and arrays sharded on explicit_mesh_axis={mapped[0]}"
        )
    return mapped[0], mesh_of([a for a in avals if a is not None])


def _check_axes(in_axes: Any, out_axes: Any) -> None:
    if isinstance(in_axes, bool) or not (in_axes is None or isinstance(in_axes, (int, tuple))):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments passed "
            f"to the function, but got {in_axes}."
        )
    check_axes_are_ints("vmap in_axes", in_axes)
    check_axes_are_ints("vmap out_axes", out_axes)


def _check_count(in_axes: Any, args: Sequence[Any]) -> None:
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ValueError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments "
            f"passed to the function, but got len(in_axes)={len(in_axes)}, len(args)={len(args)}"
        )


def check_axes_are_ints(what: str, axes: Any) -> None:
    """Raises TypeError unless ``axes``, which are those of ``what``, are a pytree of positions."""
    for a in tree_leaves(axes):
        if not isinstance(a, int) or isinstance(a, bool):
            raise TypeError(
                f"{what} must be an int, None, or (nested) container with those types as leaves, but got {axes}."
            )


def _place(axis: AxisData, dim: int | None, wanted: int | None, x: Any, fun: Callable[..., Any]) -> Any:
    if wanted is None and dim is not None:
        named = "" if axis.name is None else f" (axis_name={axis.name})"
        raise ValueError(
            f"vmap has mapped output{named} but out_axes is None: at vmap out_axes, got axis spec None but output was "
            f"batched on axis {dim}. The result of {name_of(fun)} depends on a mapped argument; its type "
            f"for one example is {aval_of(x)} without axis {dim}."
        )
    ndim = aval_of(x).ndim + (dim is None)
    if wanted is not None and not -ndim <= wanted < ndim:
        raise ValueError(
            f"axis {wanted} is out of bounds for array of dimension {ndim}: out_axes of vmap({name_of(fun)})"
        )
    return match_axis(axis, dim, None if wanted is None else wanted % ndim, x)


def mapped_size(
    what: str,
    call: UserCall,
    avals: Sequence[ShapedArray | None],
    axes: Sequence[Any],
    given: int | None,
) -> int:
    """The size of the mapped axis.

    Raises:
      ValueError: no argument has it, or it differs; ``what`` is the transformation.
    """
    sizes: dict[int, list[int]] = {}  # the arguments of each
    for n, (aval, axis) in enumerate(zip(avals, axes, strict=True)):
        if aval is None or axis is None:
            continue
        if not -aval.ndim <= axis < aval.ndim:
            raise ValueError(
                f"{what} was requested to map its argument along axis {axis}, which implies that its rank should be at "
                f"least {axis + 1 if axis >= 0 else -axis}, but is only {aval.ndim} (its shape is {aval.shape}): "
                f"argument {call.names()[n]}"
            )
        sizes.setdefault(aval.shape[axis], []).append(n)
    if not avals and given is None:
        raise ValueError(
            f"{what} wrapped function must be passed at least one argument containing an array or axis_size must be "
            f"specified, got empty *args={call.args} and **kwargs={call.kwargs}"
        )
    if not sizes and given is None:
        raise ValueError(f"{what} must have at least one non-None value in in_axes or axis_size must be specified")
    if len({*sizes, *([] if given is None else [given])}) > 1:
        named = [f"kwargs{keystr(path)}" for path, _ in tree_leaves_with_path(call.kwargs)]
        names = [f"argument {name}" for name in call.names()[: len(avals) - len(named)]] + named
        lines = [] if given is None else [f"  * the `axis_size` argument was {given}"]
        for size, found in sorted(sizes.items(), key=lambda item: -len(item[1])):
            example = f"axis {axes[found[0]]} of {names[found[0]]} of type {avals[found[0]]}"
            most = "most" if 2 * len(found) > sum(map(len, sizes.values())) else "some"
            many = f"{most} axes ({len(found)} of them) had size {size}, e.g. {example}"
            lines.append(f"  * {many if len(found) > 1 else f'one axis had size {size}: {example}'}")
        raise ValueError(f"{what} got inconsistent sizes for array axes to be mapped:\n" + ";\n".join(lines))
    return next(iter(sizes), given)  # pyright: ignore[reportReturnType]
