"""Convolutions through the graph interface of cuDNN, where ``nvidia-cudnn-frontend`` is installed.

It is told where dimensions are by their strides, but computes something else where features are neither first nor last,
or lie otherwise in windows than in arrays, and says nothing. So those are not given to it; windows are turned before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import cupy
import numpy as np

from polyax.backend import ShapedArray
from polyax_cuda.products import exact
from polyax_cuda.runtime import Copied
from polyax_kernels.api.gpu import Convolution, channels_last, describe, is_packed, packed, why_not_forward
from polyax_kernels.api.lowerings import why_missing

TYPES = {"float16": "HALF", "bfloat16": "BFLOAT16", "float32": "FLOAT"}  # in cudnn.data_type
INEXACT = ("TENSOR_CORE", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION")
"""What float32 must not be computed by, unless less is asked for."""


@cache
def built(dtype: str, asked: Convolution, device: int, exactly: bool) -> tuple[Any, Sequence[Any], Any]:
    """A graph for the current device, its operands and result, and the handle that it was made with."""
    import cudnn  # pyright: ignore[reportMissingImports]  # few have it

    handle, kind = cudnn.create_handle(), getattr(cudnn.data_type, TYPES[dtype])
    graph = cudnn.pygraph(io_data_type=kind, compute_data_type=cudnn.data_type.FLOAT, handle=handle)
    x, w = (graph.tensor(dim=dim, stride=stride, data_type=kind) for dim, stride in (asked.x, asked.window))
    y = graph.conv_fprop(
        x, w, pre_padding=asked.before, post_padding=asked.after, stride=asked.stride, dilation=asked.dilation
    )
    y.set_output(True).set_dim(asked.out[0]).set_stride(asked.out[1]).set_data_type(kind)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    if dtype == "float32" and exactly:
        graph.deselect_numeric_notes([getattr(cudnn.numerical_note, name) for name in INEXACT])
    graph.check_support()
    graph.build_plans()
    return graph, (x, w, y), handle


def prepare(
    ctx: Any, outs: Sequence[ShapedArray], args: Sequence[ShapedArray], params: Mapping[str, Any]
) -> Callable[[Sequence[Any], Sequence[Any]], None]:
    """The function that runs the graph."""
    import cudnn  # pyright: ignore[reportMissingImports]  # few have it

    runtime = ctx.runtime
    asked, order = arranged(describe(args, params), params["dimension_numbers"][1])
    with runtime.working():
        graph, tensors, handle = built(args[0].dtype.name, asked, runtime.number, exact(params))

    def run(outs: Sequence[Any], args: Sequence[Any]) -> None:
        with runtime.working():
            cudnn.set_stream(handle=handle, stream=runtime.stream.ptr)
            work = cupy.empty(max(1, graph.get_workspace_size()), "uint8")
            x, window = args
            window = window if order is None else Copied(window, order)
            places = [v.memory.ptr + v.offset for v in (x, window, *outs)]
            graph.execute(dict(zip(tensors, places, strict=True)), work.data.ptr, handle=handle)

    return run


def arranged(asked: Convolution, window: Sequence[int]) -> tuple[Convolution, Sequence[int] | None]:
    """What cuDNN is asked for, and the order of dimensions that the window is copied to first, if it has another one.

    ``window``: which dimensions of it are out features, in features and space.
    """
    last = bool(channels_last(asked))
    if is_packed(asked.window, channels_last=last):
        return asked, None
    out, features, *space = window
    order = (out, *space, features) if last else (out, features, *space)
    return replace(asked, window=packed(asked.window[0], channels_last=last)), order


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Why a convolution is left to tiles; cuDNN itself is asked last whether it has an engine."""
    names = {a.dtype.name for a in avals} | {np.dtype(params["preferred_element_type"] or avals[0].dtype).name}
    if len(names) > 1 or not names <= TYPES.keys() or len(params["window_strides"]) not in (2, 3):
        return f"cuDNN is called for one of {', '.join(TYPES)} and two or three spatial dimensions"
    missing = why_missing("cudnn", "cuDNN", "nvidia-cudnn-frontend nvidia-cudnn-cu12")
    if reason := why_not_forward(avals, params) or missing:
        return f"cuDNN: {reason}"
    asked = describe(avals, params)
    if channels_last(asked) is None:
        return "cuDNN: features must be first or last, in the operand as in the result"
    try:
        asked, _ = arranged(asked, params["dimension_numbers"][1])
        built(avals[0].dtype.name, asked, cupy.cuda.runtime.getDevice(), exact(params))
    except Exception as e:  # a class of cuDNN's own for each kind of refusal, by version
        return f"cuDNN has no engine for it: {e}"
    return None
