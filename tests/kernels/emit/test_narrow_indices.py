"""Indices of 32 bits: what an emitter is given where ``Limits.index_dtype`` asks for them, and what is refused.

Where a language has no integers of 64 bits, what kernels compute in int64 is indices alone, and none of them leaves 32
bits, which each operation of ``ShortIndices`` looks at.
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


class Counting(NumpyEmitter):
    """Loops count in 32 bits."""

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


class ShortIndices(Counting):
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


class ShortBackend(NumpyKernelBackend):
    """Its emitter is given int64, and narrows it by itself."""

    limits = Limits(dtypes=NATIVE - WIDE)
    emitter: type[NumpyEmitter] = ShortIndices

    def why_no_dtype(self, dtype: Any) -> str | None:
        return self.limits.why_not(dtype)


class Told(Counting):
    """Is given no type of 64 bits, and says so."""

    def op(self, name: str, dtype: np.dtype, *args: np.ndarray) -> np.ndarray:
        assert not WIDE & {dtype, *(x.dtype for x in args)}
        return super().op(name, dtype, *args)

    def cast(self, x: np.ndarray, source: np.dtype, target: np.dtype) -> np.ndarray:
        assert not WIDE & {x.dtype, source, target}
        return super().cast(x, source, target)


class ToldBackend(ShortBackend):
    """Its emitter is given int32."""

    limits = Limits(dtypes=NATIVE - WIDE, index_dtype=SHORT)
    emitter = Told


class MixedBackend(NumpyKernelBackend):
    """Indices have 32 bits, numbers 64 as well."""

    limits = Limits(index_dtype=SHORT)


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in PLACES.items()])
@pytest.mark.parametrize("kind", [ShortBackend, ToldBackend])
def test_indices_fit_into_32_bits(case: Case, kind: type[NumpyKernelBackend]) -> None:
    with polyax.default_device("reference"):
        want = [np.asarray(x) for x in as_list(case.fun(*map(jnp.asarray, case.args)))]
    with polyax.default_device(kind().devices()[0]), polyax.config.override(host_fallback="allow"):
        got = [np.asarray(x) for x in as_list(polyax.jit(case.fun)(*map(jnp.asarray, case.args)))]
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4 * np.max(np.abs(w), initial=1.0))


def test_what_needs_64_bits_is_refused() -> None:
    (device, *_) = ShortBackend().devices()
    refused = pytest.raises(TypeError, match="the device has no int64")
    with polyax.default_device(device), polyax.enable_x64(True), refused:
        jnp.arange(3) + 1


@pytest.mark.parametrize("kind", [ToldBackend, MixedBackend])
def test_arrays_that_they_cannot_count_are_refused(kind: type[NumpyKernelBackend]) -> None:
    (device, *_) = kind().devices()
    large = (1 << 16, 1 << 15)
    told = r"it has 2,147,483,648 elements, and numpy_kernels counts them in int32, up to 2,147,483,647. Compute it in"
    refused = pytest.raises(ValueError, match=told)
    with polyax.default_device(device):
        with refused as result:
            polyax.jit(lambda: jnp.zeros(large, np.int8))()
        with refused as inside:
            polyax.jit(lambda: jnp.zeros(large, np.int8).sum())()
        with refused:
            jnp.asarray(np.broadcast_to(np.int8(0), large))
    assert "a result of type int8[65536,32768]" in str(result.value)
    assert "broadcast_in_dim of type int8[65536,32768] can't be had on" in str(inside.value)


def test_numbers_of_64_bits_stay_what_they_are() -> None:
    (device, *_) = MixedBackend().devices()
    x = np.arange(5, dtype=np.int32)
    with polyax.default_device(device), polyax.enable_x64(True):
        product = polyax.jit(lambda x: (x.astype(np.int64) * 10**9 // 10**8).astype(np.int32))(x)
        counted = polyax.jit(lambda x: x + jnp.arange(5) * 10**9)(x)
    np.testing.assert_array_equal(product, 10 * x)
    np.testing.assert_array_equal(counted, x + np.arange(5) * 10**9)


@pytest.mark.parametrize("place, found", [(2, 2), (2**31, 4), (2**32 - 1, 4)])
def test_places_beyond_32_bits_are_at_the_end(place: int, found: int) -> None:
    (device, *_) = ToldBackend().devices()
    x, start = np.arange(5, dtype=np.float32), np.uint32(place)
    with polyax.default_device(device):
        got = polyax.jit(lambda x, start: polyax.lax.dynamic_slice(x, (start,), (1,)))(x, start)
    np.testing.assert_array_equal(got, [found])
