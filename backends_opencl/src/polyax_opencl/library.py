"""Matrix products through CLBlast, where its Python interface ``pyclblast`` is installed. Knows no kernels."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyax.backend import Primitive, ShapedArray
from polyax.lax import dot_general_p
from polyax_kernels.api.lowerings import Call, Lowering, count, sides, stored
from polyax_opencl.probe import cl, find

TYPES = ("float32", "float64")


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Why a product is left to the tiles that all GPU backends share."""
    if importlib.util.find_spec("pyclblast") is None:
        return "CLBlast isn't installed: install the library, then pip install pyclblast"
    if not any(device.type & cl.device_type.GPU for device in find().devices):
        return "CLBlast is written for GPUs, and there is none"
    return why_no_product(avals, params)


def why_no_product(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    dtypes = {a.dtype.name for a in avals} | {np.dtype(params.get("preferred_element_type") or avals[0].dtype).name}
    if len(dtypes) > 1 or not dtypes.issubset(TYPES):
        return f"CLBlast multiplies {' or '.join(TYPES)}, not {', '.join(sorted(dtypes))}"
    if any(0 in a.shape for a in avals):
        return "CLBlast takes no empty matrices"
    left, right = sides(avals, params)
    if stored(left, True) is None or stored(right, False) is None:
        return "CLBlast can't step through an operand where it lies"
    return None


def multiply(ctx: Any, outs: Sequence[Any], args: Sequence[Any], **params: Any) -> None:
    """One call of ``gemmStridedBatched``, put into the device's queue."""
    import pyclblast  # pyright: ignore[reportMissingImports]  # few have it
    from pyopencl.array import Array

    left, right = sides([view.aval for view in args], params)
    a, b = stored(left, True), stored(right, False)
    assert a is not None and b is not None, "why_no_product declines it"
    batch, m, n, k = (count(digits) for digits in (left.batch, left.free, right.free, left.contracted))
    queue, views = ctx.runtime.queue, (*args, *outs)
    x, y, z = (Array(queue, (1, 1), view.aval.dtype, data=view.memory) for view in views)
    starts = [view.offset // view.aval.dtype.itemsize for view in views]
    pyclblast.gemmStridedBatched(
        queue, m, n, k, batch, x, y, z,
        a_ld=a.ld, b_ld=b.ld, c_ld=n, a_stride=a.stride, b_stride=b.stride, c_stride=m * n,
        a_transp=a.transposed, b_transp=b.transposed, a_offset=starts[0], b_offset=starts[1], c_offset=starts[2],
    )  # fmt: skip


LOWERINGS: dict[Primitive, Lowering] = {dot_general_p: Call(multiply, why_not, operands="device")}
