"""The kernels of programs for a device that isn't there: their texts, to be read or given to a compiler.

Knows devices by their limits alone; nothing is loaded or run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from polyax.ir.jaxpr import ClosedJaxpr
from polyax.runtime.contract.backend import CompileOptions
from polyax_kernels.gpu.backend import GpuBackend
from polyax_kernels.gpu.runtime import KernelRejected, Runtime
from polyax_kernels.gpu.schedule import choose
from polyax_kernels.ir.expr import consing
from polyax_kernels.ir.limits import Limits
from polyax_kernels.pipeline import plan_of
from polyax_kernels.plan.plan import KernelStep, walk_steps


def _refuse(*_: Any) -> Any:
    raise NotImplementedError("the device isn't there: the kernels for it can be read, not run")


_not_there: Any = _refuse


class Absent(Runtime):
    """A device of which the limits are known, and no more."""

    kind = "absent"
    allocate = write = read = copy = load = launch = mark = _not_there

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def synchronize(self) -> None:
        """Nothing was put into its queue."""


def sources(backend: type[GpuBackend], name: str, program: ClosedJaxpr, limits: Limits) -> list[str]:
    """The kernels of ``program`` on a device with ``limits`` of the platform ``name``; library calls have none."""
    absent = backend(name, [Absent(limits)])
    with consing():
        plan = plan_of(program, absent.compilation(CompileOptions(absent.devices()[0])))
        steps = [s for s in walk_steps(plan) if isinstance(s, KernelStep)]
        return [absent.write(s.kernel, choose(s.kernel, limits, s.scalars)) for s in steps]


def compile_all(texts: Iterable[str], header: str, compiled: Callable[[str], Any]) -> int:
    """Compiles the distinct texts, in a dialect of C++ and each beginning with ``header``, all together since that is
    faster; returns how many there are.

    Raises:
      KernelRejected: of one of them, by ``compiled``.
    """
    distinct = list(dict.fromkeys(texts))
    bodies = (text.removeprefix(header).replace('extern "C" ', "") for text in distinct)
    try:
        compiled(header + "".join(f"namespace n{n} {{\n{b}}}\n" for n, b in enumerate(bodies)))
    except KernelRejected:
        for text in distinct:
            compiled(text)
        raise
    return len(distinct)
