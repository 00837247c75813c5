"""Library calls in terms of a GPU's own NumPy (CuPy and its like), whose functions put their work into the queue.

Knows none of them: a backend says how an operand becomes such an array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.runtime.contract.hooks import WhyNot
from polyax_kernels.lower.lowering import Call


def call(function: Callable[..., Any], array: Callable[[Any], Any], why_not: WhyNot) -> Call:
    """The call of a ``function`` that takes and returns arrays; ``array`` makes one of an operand, on its memory."""

    def run(ctx: Any, outs: Sequence[Any], args: Sequence[Any], **params: Any) -> None:
        with ctx.runtime.working():
            found = function(*map(array, args), **params)
            for out, result in zip(outs, found if isinstance(found, (list, tuple)) else [found], strict=True):
                array(out)[...] = result

    return Call(run, why_not, operands="device")


def why_no_sort(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Why Thrust and its like, which such arrays are sorted by, aren't asked.

    >>> import numpy as np
    >>> why_no_sort([ShapedArray((3,), np.dtype("complex64"))], {})
    "parallel sorts take no ['complex64']"
    """
    odd = sorted({a.dtype.name for a in avals if a.dtype.kind == "c" or a.dtype.name == "bfloat16"})
    return f"parallel sorts take no {odd or 'empty arrays'}" if odd or any(0 in a.shape for a in avals) else None
