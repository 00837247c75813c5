"""``vmap``: a function of examples becomes a function of batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.api.arguments import wraps
from polyax.ir.aval import aval_of
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.flat import Flat, check_arrays, check_callable, name_of
from polyax.trace.paths import flatten_axes, keystr, tree_leaves_with_path
from polyax.trace.tree import tree_flatten, tree_leaves
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
      spmd_axis_name, sum_match: reserved; ``sum_match`` must be False.

    Raises:
      ValueError: the mapped axes have different sizes, or ``in_axes`` doesn't fit; both are shown.

    >>> import numpy as np
    >>> vmap(lambda x, y: x * y, in_axes=(0, None))(np.arange(3.), 2.0).tolist()
    [0.0, 2.0, 4.0]
    """
    check_callable(fun)
    if sum_match:
        raise NotImplementedError("vmap: sum_match=True is not supported")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or isinstance(in_axes, (int, tuple))):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments passed "
            f"to the function, but got {in_axes}."
        )
    _check_axes_are_ints("in_axes", in_axes)
    _check_axes_are_ints("out_axes", out_axes)

    @wraps(fun, "Vectorized version of {fun}. Takes similar arguments with additional array axes.\n\n{doc}")
    @api_boundary
    def vmap_f(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments "
                f"passed to the function, but got len(in_axes)={len(in_axes)}, len(args)={len(args)}"
            )
        check_arrays((args, kwargs), f"an argument of vmap({name_of(fun)})")
        leaves, in_tree = tree_flatten((args, kwargs))
        axes = flatten_axes("vmap in_axes", in_tree, (in_axes, 0), tupled_args=True)
        size = _axis_size(fun, args, kwargs, leaves, axes, axis_size)
        dims = [None if a is None else a % aval_of(x).ndim for x, a in zip(leaves, axes, strict=True)]
        flat = Flat(fun, in_tree)
        outs, out_dims = batch_flat(flat, AxisData(size, axis_name, spmd_axis_name), leaves, dims)
        assert flat.out_tree is not None
        wanted = flatten_axes("vmap out_axes", flat.out_tree, out_axes)
        return flat.unflatten([_place(size, d, w, x, fun) for x, d, w in zip(outs, out_dims, wanted, strict=True)])

    return vmap_f


def _check_axes_are_ints(name: str, axes: Any) -> None:
    for a in tree_leaves(axes):
        if not isinstance(a, int):
            raise TypeError(
                f"vmap {name} must be an int, None, or (nested) container with those types as leaves, but got {axes}."
            )


def _place(size: int, dim: int | None, wanted: int | None, x: Any, fun: Callable[..., Any]) -> Any:
    if wanted is None and dim is not None:
        raise ValueError(
            f"vmap has mapped output but out_axes is None: the result of {name_of(fun)} depends on a mapped argument; "
            f"its type for one example is {aval_of(x)} without axis {dim}."
        )
    ndim = aval_of(x).ndim + (dim is None)
    if wanted is not None and not -ndim <= wanted < ndim:
        raise ValueError(
            f"axis {wanted} is out of bounds for array of dimension {ndim}: out_axes of vmap({name_of(fun)})"
        )
    return match_axis(size, dim, None if wanted is None else wanted % ndim, x)


def _axis_size(
    fun: Callable[..., Any], args: Any, kwargs: Any, leaves: Sequence[Any], axes: Sequence[Any], given: int | None
) -> int:
    sizes: dict[int, str] = {}
    names = [_describe(p, args) for p, _ in tree_leaves_with_path((args, kwargs))]
    for name, x, axis in zip(names, leaves, axes, strict=True):
        if axis is None:
            continue
        aval = aval_of(x)
        if not -aval.ndim <= axis < aval.ndim:
            raise ValueError(
                f"vmap was requested to map its argument along axis {axis}, which implies that its rank should be at "
                f"least {axis + 1 if axis >= 0 else -axis}, but is only {aval.ndim} (its shape is "
                f"{aval.shape}): {name} of {name_of(fun)}"
            )
        sizes.setdefault(aval.shape[axis], f"{name} of type {aval} has size {aval.shape[axis]} along axis {axis}")
    if given is not None:
        sizes.setdefault(given, f"axis_size is {given}")
    if not sizes:
        raise ValueError("vmap must have at least one non-None value in in_axes, or axis_size")
    if len(sizes) > 1:
        lines = "".join(f"\n  * {what}" for what in sizes.values())
        raise ValueError(f"vmap got inconsistent sizes for array axes to be mapped:{lines}")
    return next(iter(sizes))


def _describe(path: Any, args: Any) -> str:
    which, index, *rest = path
    return (
        f"argument {index}{keystr(tuple(rest))}"
        if which.idx == 0
        else f"keyword argument {index[0]}{keystr(tuple(rest))}"
    )
