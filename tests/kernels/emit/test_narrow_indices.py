"""Languages without 64-bit integers: an emitter may write indices in 32 bits, where ``Limits`` have no others.

What is computed in int64 then is indices alone, and none of them leaves 32 bits, which each operation here looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from kernels.numpy_backend import NumpyKernelBackend

pytest.importorskip("polyax_conformance")

import polyax
import polyax.numpy as jnp
from polyax_conformance.specs.case import Case, as_list
from polyax_conformance.specs.primitives.table import CASES
from polyax_kernels.emit.numpy import NumpyEmitter
from polyax_kernels.ir import scalars
from polyax_kernels.ir.limits import NATIVE, Limits

LONG, SHORT = np.dtype("int64"), np.dtype("int32")
WIDE = {LONG, np.dtype("uint64"), np.dtype("float64")}
PLACES = {n: case for n, case in CASES.items() if n.startswith(("arrays", "indexing", "windows"))}


def short(dtype: np.dtype) -> np.dtype:
    return SHORT if dtype == LONG else dtype


class ShortIndices(NumpyEmitter):
    """Where kernels say int64, int32 is meant."""

    def const(self, value: Any, dtype: np.dtype) -> np.ndarray:
        return self.exact(np.asarray(value, dtype))

    def param(self, position: int, dtype: np.dtype) -> np.ndarray:
        return self.exact(super().param(position, dtype))

    def op(self, name: str, dtype: np.dtype, *args: np.ndarray) -> np.ndarray:
        assert LONG not in {x.dtype for x in args}
        if dtype != LONG:
            return super().op(name, dtype, *args)
        return self.exact(scalars.evaluate(name, *(x.astype(LONG) if x.dtype == SHORT else x for x in args)))

    def exact(self, x: np.ndarray) -> np.ndarray:
        """``x`` in 32 bits, if it was an index: all of it is there."""
        narrow = x.astype(short(x.dtype))
        np.testing.assert_array_equal(narrow, x)
        return narrow

    def cast(self, x: np.ndarray, source: np.dtype, target: np.dtype) -> np.ndarray:
        return super().cast(x, short(source), short(target))

    def loop(self, start: Any, stop: Any, body: Callable[[Any], None], *, hint: str = "") -> None:
        super().loop(start, stop, lambda i: body(i.astype(SHORT)), hint=hint)

    def fold(
        self,
        stop: Any,
        inits: Sequence[Any],
        dtypes: Sequence[np.dtype],
        body: Callable[[Any, Sequence[Any]], Sequence[Any]],
        *,
        combines: Sequence[str] = (),
        hint: str = "",
    ) -> Sequence[Any]:
        return super().fold(stop, inits, dtypes, lambda i, c: body(i.astype(SHORT), c), combines=combines, hint=hint)


class ShortBackend(NumpyKernelBackend):
    limits = Limits(dtypes=NATIVE - WIDE)
    emitter = ShortIndices

    def why_no_dtype(self, dtype: Any) -> str | None:
        return self.limits.why_not(dtype)


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in PLACES.items()])
def test_indices_fit_into_32_bits(case: Case) -> None:
    with polyax.default_device("reference"):
        want = [np.asarray(x) for x in as_list(case.fun(*map(jnp.asarray, case.args)))]
    with polyax.default_device(ShortBackend().devices()[0]), polyax.config.override(host_fallback="allow"):
        got = [np.asarray(x) for x in as_list(polyax.jit(case.fun)(*map(jnp.asarray, case.args)))]
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4 * np.max(np.abs(w), initial=1.0))


def test_what_needs_64_bits_is_refused() -> None:
    (device, *_) = ShortBackend().devices()
    refused = pytest.raises(TypeError, match="the device has no int64")
    with polyax.default_device(device), polyax.enable_x64(True), refused:
        jnp.arange(3) + 1
