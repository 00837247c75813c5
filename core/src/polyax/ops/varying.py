"""Values that vary along axes of a mesh, and values that don't: from one to the other (``trace.varying``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.ir.aval import aval_of
from polyax.ir.primitive import ambient, def_rule
from polyax.ops.collective import BY_HAND, axis_size, names_of, psum_invariant_p
from polyax.ops.define import linear
from polyax.ops.sums import preduced_p, reduced_vary_cast_p, vary_unreduced_cast_p
from polyax.trace.tree import tree_map
from polyax.trace.varying import Vma, in_order, pvary_p, state_of, vma_of
from polyax.trace.varying import pvary as varied

__all__ = ["pcast", "pvary"]


def pvary(x: Any, axis_name: Any) -> Any:
    """``x``, a pytree, as a value that may differ along the named axis (or axes), though it doesn't: its cotangents are
    summed along them. Outside of a ``shard_map`` that checks types, ``x`` as it is.

    Raises:
      NameError: nothing around binds the name.
      ValueError: ``x`` varies along the axis as it is.
    """
    axis_size(axis_name)
    axes = tuple(a for a in names_of(axis_name) if a in ambient.varying)
    return tree_map(lambda v: _pvary(v, axes), x)


def _pvary(x: Any, axes: tuple[Any, ...]) -> Any:
    if twice := in_order(vma_of(x).intersection(axes)):
        raise ValueError(
            f"Unsupported pcast from=varying, to='varying': the value varies along {', '.join(map(str, twice))} as it "
            f"is, its axes are {in_order(vma_of(x))}. Name only those of {axes} along which it doesn't."
        )
    return pvary_p.bind1(x, axes=axes) if axes else x


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """``x``, a pytree, as a value of another type along the named axis (or axes), which has the same parts.

    Args:
      to: ``"varying"``, of what is the same everywhere; ``"unreduced"``: what varies is a sum still to be made;
        ``"reduced"``: what is the same everywhere has a cotangent that is such a sum.

    Raises:
      NameError: nothing around binds the name.
      ValueError: what ``x`` is along the axis can't become that, ``to`` is none of these, or no axis is bound at all.
    """
    if to not in ("varying", "reduced", "unreduced"):
        raise ValueError(
            f"Got unexpected `to` value {to!r}. Allowed `to` values are: {{'unreduced', 'varying', 'reduced'}}"
        )
    if not isinstance(axis_name, (tuple, str)):
        raise TypeError(f"{axis_name=} must be a tuple or a str. Got {axis_name}")
    if not ambient.axis_env:
        name = "pvary" if to == "varying" else f"pcast(..., {to=})"
        raise ValueError(f"{name} should be called under polyax.shard_map.")
    axis_size(axis_name)
    axes = tuple(a for a in names_of(axis_name) if a in ambient.varying)
    if not axes and to == "unreduced":
        raise ValueError(
            f"Unsupported pcast from=invarying, {to=}: types don't tell here what varies along {axis_name}"
        )
    return tree_map(lambda v: _cast(v, axes, to), x) if axes else x


_CASTS = {
    ("invarying", "varying"): pvary_p,
    ("invarying", "reduced"): preduced_p,
    ("varying", "unreduced"): vary_unreduced_cast_p,
    ("reduced", "varying"): reduced_vary_cast_p,
}


def _cast(x: Any, axes: tuple[Any, ...], to: str) -> Any:
    before = state_of(aval_of(x), axes, "polyax.lax.pcast")
    if (before, to) not in _CASTS:
        raise ValueError(f"Unsupported pcast from={before}, {to=}: the value has the type {aval_of(x)}, axes: {axes}")
    return _CASTS[before, to].bind1(x, axes=axes)


def varying_as(ct: Any, wanted: Vma) -> Any:
    """A cotangent as its value varies: along axes where that is the same, the cotangents of all are summed."""
    vma = vma_of(ct)
    if vma == wanted:
        return ct
    extra = in_order(vma - wanted)
    return varied(psum_invariant_p.bind1(ct, axes=extra) if extra else ct, wanted)


linear(pvary_p, lambda ct, x, axes: psum_invariant_p.bind1(ct, axes=axes))
linear(psum_invariant_p, lambda ct, x, axes: pvary_p.bind1(ct, axes=axes))


def _keeping_dims(p: Any) -> Any:
    def batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, axes: Any) -> Any:
        return p.bind_all(*args, axes=axes), list(dims)

    return batch


pvary_p.batch, psum_invariant_p.batch = _keeping_dims(pvary_p), _keeping_dims(psum_invariant_p)


@def_rule(pvary_p, "decompose")
def _as_it_is(x: Any, **_: Any) -> list[Any]:
    return [x]


pvary_p.never("factors", BY_HAND)
