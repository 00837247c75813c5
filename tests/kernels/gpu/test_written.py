"""The generic GPU path in a language that isn't C's: kernels as their own text, which a runtime interprets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from kernels.gpu.host_runtime import HostRuntime
from kernels.programs import compiled, launched, traced

import polyax
import polyax.numpy as jnp
from polyax.ir.primitive import Primitive
from polyax_kernels.api.gpu import NAME, GpuBackend, GpuSchedule, KernelRejected
from polyax_kernels.emit.numpy import run
from polyax_kernels.ir.expr import consing
from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.ir.limits import Limits

X = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)


class Interpreter(HostRuntime):
    """A device whose compiler knows the texts in ``written``."""

    kind = "interpreter"
    limits = Limits(group=8)

    def __init__(self) -> None:
        self.written: dict[str, Kernel] = {}

    def load(self, source: str, name: str) -> Any:
        assert name == NAME
        if source not in self.written:
            raise KernelRejected(self.kind, "a text of somebody else", source)
        return self.written[source]

    def launch(self, function: Kernel, groups: Any, threads: Any, operands: Sequence[Any], scalars: Any) -> None:
        arrays = []
        for (memory, offset), o in zip(operands, [o for o in function.operands if o.role != "local"], strict=True):
            sizes = [n if isinstance(n, int) else scalars[n.attr] for n in o.shape]
            arrays.append(memory[offset:].view(o.dtype)[: int(np.prod(sizes))])
        with consing():
            run(function, arrays, scalars)


class Written(GpuBackend):
    def write(self, kernel: Kernel, schedule: GpuSchedule) -> str:
        text = f"{schedule.mode} {kernel!r}"
        runtime: Any = self.runtimes[0]
        runtime.written[text] = kernel
        return text

    def family_lowerings(self) -> Mapping[Primitive, Any]:
        return {}

    def lowerings(self) -> Mapping[Primitive, Any]:
        return {}


@pytest.mark.parametrize(
    "program", [lambda x: jnp.sin(x) * 2 + x, lambda x: polyax.nn.softmax(x), lambda x: (x.sum(0), x.max(1), x @ x.T)]
)
def test_any_text_goes(program: Any) -> None:
    runtime = Interpreter()
    backend: Any = Written("written", [runtime])
    closed = traced(program, [X])
    executable = compiled(backend, closed)
    with polyax.default_device("reference"):
        want = polyax.tree_util.tree_leaves(polyax.jit(program)(X))
    for got, right in zip(launched(backend, executable, closed, [X]), want, strict=True):
        np.testing.assert_allclose(got, np.asarray(right), rtol=1e-5, atol=1e-6)
    sources = [k.source for k in executable.report().kernels if k.kind == "kernel"]
    assert sources and set(sources) <= set(runtime.written)
