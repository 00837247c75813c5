"""Library calls through the host: what a device has no library for is copied there, done by NumPy and copied back.

Which primitives may do so is a backend's ``library``, so that it never happens unasked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax_kernels.lower.lowering import Call


def through_host(call: Call) -> Call:
    """``call``, which takes NumPy arrays, on views of a device's memory."""

    def run(context: Any, outs: Sequence[Any], args: Sequence[Any], **params: Any) -> None:
        runtime = context.runtime
        results = [np.empty(v.aval.shape, v.aval.dtype) for v in outs]
        values = [np.empty(v.aval.shape, v.aval.dtype) for v in args]
        for view, value in zip(args, values, strict=True):
            if value.nbytes:
                runtime.read(view.memory, view.offset, value)
        call.ready(context, [v.aval for v in outs], [v.aval for v in args], params)(results, values)
        for view, result in zip(outs, results, strict=True):
            if result.nbytes:
                runtime.write(view.memory, view.offset, result)

    return Call(run, call.why_not, call.priority, operands="device", waits=True)
