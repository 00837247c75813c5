"""Convolutions through the graph interface of cuDNN, where ``nvidia-cudnn-frontend`` is installed.

cuDNN takes any order of dimensions by strides: what ours are called is a matter of their order alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import cupy

from polyax.ir.aval import ShapedArray
from polyax.ops.conv_shapes import Sizes, output_sizes, spatial
from polyax_cuda.views import why_missing
from polyax_kernels.lowering import CallContext

TYPES = {"float16": "HALF", "bfloat16": "BFLOAT16", "float32": "FLOAT"}
"""The names of dtypes in ``cudnn.data_type``."""
INEXACT = ("TENSOR_CORE", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION")
"""What float32 must not be computed by: their products have 10 bits."""


@dataclass(frozen=True)
class Layout:
    """Sizes and strides of batch, features and space; of a window out features, in features and space."""

    dim: Sizes
    stride: Sizes


@dataclass(frozen=True)
class Convolution:
    """A convolution as cuDNN is asked for it. It has at least two spatial dimensions."""

    dtype: str
    x: Layout
    w: Layout
    y: Layout
    before: Sizes
    after: Sizes
    stride: Sizes
    dilation: Sizes


def describe(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> Convolution:
    lhs, rhs = (a.shape for a in avals)
    numbers, padding = params["dimension_numbers"], params["padding"]
    steps, dilation = params["window_strides"], params["rhs_dilation"]
    places = output_sizes(
        spatial(lhs, numbers.lhs_spec), spatial(rhs, numbers.rhs_spec), steps, padding, params["lhs_dilation"], dilation
    )
    sizes = (lhs[numbers.lhs_spec[0]], rhs[numbers.rhs_spec[0]], *places)
    out = [0] * len(sizes)
    for dimension, size in zip(numbers.out_spec, sizes, strict=True):
        out[dimension] = size
    layouts = [layout(s, spec) for s, spec in zip((lhs, rhs, out), numbers, strict=True)]
    before, after = (tuple(p[n] for p in padding) for n in (0, 1))
    extra = 1 if len(steps) == 1 else 0
    zeros, ones = (0,) * extra, (1,) * extra
    windows = zeros + before, zeros + after, ones + tuple(steps), ones + tuple(dilation)
    return Convolution(avals[0].dtype.name, *layouts, *windows)


def layout(shape: Sequence[int], spec: Sizes) -> Layout:
    """A row-major array whose dimension ``spec[n]`` is number ``n`` for cuDNN.

    >>> layout((8, 32, 32, 3), (0, 3, 1, 2))  # NHWC
    Layout(dim=(8, 3, 32, 32), stride=(3072, 1, 96, 3))
    """
    strides = [1] * len(shape)
    for d in reversed(range(len(shape) - 1)):
        strides[d] = strides[d + 1] * shape[d + 1]
    dim, stride = ([values[d] for d in spec] for values in (shape, strides))
    if len(dim) == 3:  # one spatial dimension: another one of size 1 before it
        dim.insert(2, 1)
        stride.insert(2, dim[3] * stride[3])
    return Layout(tuple(dim), tuple(stride))


def run(ctx: CallContext, outs: Sequence[Any], args: Sequence[Any], **params: Any) -> None:
    import cudnn

    with ctx.runtime.working():
        graph, tensors, handle = built(describe([v.aval for v in args], params), ctx.runtime.number)
        cudnn.set_stream(handle=handle, stream=ctx.runtime.stream.ptr)
        work = cupy.empty(max(1, graph.get_workspace_size()), "uint8")
        places = [v.memory.ptr + v.offset for v in (*args, *outs)]
        graph.execute(dict(zip(tensors, places, strict=True)), work.data.ptr, handle=handle)


@cache
def built(asked: Convolution, device: int) -> tuple[Any, Sequence[Any], Any]:
    """A graph for the current device, its operands and result, and the handle that it was made with."""
    import cudnn

    handle, kinds = handle_of(device), cudnn.data_type
    kind = getattr(kinds, TYPES[asked.dtype])
    graph = cudnn.pygraph(
        io_data_type=kind, intermediate_data_type=kinds.FLOAT, compute_data_type=kinds.FLOAT, handle=handle
    )
    x, w = (graph.tensor(dim=o.dim, stride=o.stride, data_type=kind) for o in (asked.x, asked.w))
    y = graph.conv_fprop(
        x, w, pre_padding=asked.before, post_padding=asked.after, stride=asked.stride, dilation=asked.dilation
    )
    y.set_output(True).set_dim(asked.y.dim).set_stride(asked.y.stride).set_data_type(kind)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    if asked.dtype == "float32":
        graph.deselect_numeric_notes([getattr(cudnn.numerical_note, name) for name in INEXACT])
    graph.check_support()
    graph.build_plans()
    return graph, (x, w, y), handle


@cache
def handle_of(device: int) -> Any:
    """cuDNN's state for the current device."""
    import cudnn

    return cudnn.create_handle()


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    names = {a.dtype.name for a in avals} | {str(params.get("preferred_element_type") or avals[0].dtype)}
    if len(names) > 1 or not names <= TYPES.keys():
        return f"cuDNN is called for one of {', '.join(TYPES)}, not for {' and '.join(sorted(names))}"
    if set(params["lhs_dilation"]) - {1} or params["batch_group_count"] != 1:
        return "cuDNN is called for forward convolutions, without lhs_dilation and batch groups"
    if not 1 <= len(params["window_strides"]) <= 3 or min(n for pair in params["padding"] for n in pair) < 0:
        return "cuDNN is called for one to three spatial dimensions and paddings that aren't negative"
    if any(0 in a.shape for a in avals):
        return "cuDNN takes no empty arrays"
    missing = why_missing("cudnn", "cuDNN", "nvidia-cudnn-frontend nvidia-cudnn-cu12")
    return missing or why_not_built(describe(avals, params))


def why_not_built(asked: Convolution) -> str | None:
    """What cuDNN says about a convolution for which it has no engine."""
    import cudnn

    try:
        built(asked, cupy.cuda.runtime.getDevice())
    except (cudnn.cudnnGraphNotSupportedError, RuntimeError) as e:
        return f"cuDNN has no engine for it: {e}"
    return None
