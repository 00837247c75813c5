"""Tracing, compiling and running small programs on the NumPy kernel backend and on the reference rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from kernels.numpy_backend import NumpyKernelBackend

from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.reference.interpreter import evaluate
from polyax.runtime.contract.backend import CompileOptions, Executable
from polyax.trace.recording import trace_to_jaxpr
from polyax_kernels.ir.expr import consing
from polyax_kernels.pipeline import plan_of
from polyax_kernels.plan.plan import Plan

Arrays = Sequence[np.ndarray]


def traced(fun: Callable[..., Any], args: Arrays) -> ClosedJaxpr:
    """The program of ``fun``, which returns one value or a list."""

    def flat(*xs: Any) -> list[Any]:
        result = fun(*xs)
        return list(result) if isinstance(result, (list, tuple)) else [result]

    return trace_to_jaxpr(flat, [ShapedArray(x.shape, x.dtype) for x in args])


def compiled(
    backend: NumpyKernelBackend, closed: ClosedJaxpr, donated: tuple[bool, ...] = (), eager: bool = False
) -> Executable:
    return backend.compile(closed, CompileOptions(backend.devices()[0], donated, eager=eager))


def planned(backend: NumpyKernelBackend, closed: ClosedJaxpr, donated: tuple[bool, ...] = ()) -> Plan:
    with consing():
        return plan_of(closed, backend.compilation(CompileOptions(backend.devices()[0], donated)))


def launched(
    backend: NumpyKernelBackend, executable: Executable, closed: ClosedJaxpr, args: Arrays
) -> list[np.ndarray]:
    device = backend.devices()[0]
    values = [*map(np.asarray, closed.consts), *args]
    buffers = [backend.to_device(np.ascontiguousarray(x).reshape(x.shape), device) for x in values]
    outs, _ = executable.launch(buffers, device.queue)
    return [backend.to_host(b, a) for b, a in zip(outs, closed.out_avals, strict=True)]


def on_kernels(
    fun: Callable[..., Any], args: Arrays, fused: bool | Collection[str] = True, **options: Any
) -> list[np.ndarray]:
    backend = NumpyKernelBackend(fused)
    closed = traced(fun, args)
    return launched(backend, compiled(backend, closed, **options), closed, args)


def on_reference(fun: Callable[..., Any], args: Arrays) -> list[np.ndarray]:
    closed = traced(fun, args)
    return evaluate(closed.jaxpr, [*map(np.asarray, closed.consts), *args])


def assert_same(got: Arrays, want: Arrays) -> None:
    for g, w in zip(got, want, strict=True):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        if g.dtype.kind in "biu":
            np.testing.assert_array_equal(g, w)
        else:
            np.testing.assert_allclose(g.astype("f8"), w.astype("f8"), rtol=1e-5, atol=1e-5)
