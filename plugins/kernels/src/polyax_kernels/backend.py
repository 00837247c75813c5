"""``KernelBackend``: a backend that compiles jaxprs by lowering, fusing, planning and emitting kernels.

A subclass brings devices, memory and ``compile_plan``, which makes executables.
"""

from __future__ import annotations

import inspect
import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from polyax.ir.blame import expected
from polyax.ir.errors import PluginError
from polyax.ir.garbage import collection_paused
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive
from polyax.ir.source import register_internal
from polyax.runtime.contract.backend import Backend, Buffer, CompileOptions, Device, Executable, Meaning
from polyax.runtime.contract.hooks import Chosen, Offer
from polyax.runtime.plugins.registry import registry
from polyax_kernels import settings
from polyax_kernels.ir.expr import consing
from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.ir.limits import Limits
from polyax_kernels.lower.choice import Rules
from polyax_kernels.lower.fallback import host_rule
from polyax_kernels.lower.lowering import OPERANDS, Call, Family, Operands, Target
from polyax_kernels.lower.rules import SHARED
from polyax_kernels.pipeline import Compilation, meanings, plan_of
from polyax_kernels.plan.journal import Journal
from polyax_kernels.plan.plan import Plan

SAID: Sequence[tuple[str, type | tuple[type, ...], str]] = (
    ("limits", Limits, "Limits"),
    ("operands", str, "'host' or 'device'"),
    ("library", (set, frozenset), "a set of primitives' names"),
    ("fusers", (tuple, list), "a tuple of fusers' names"),
)
"""What a backend says of itself by attributes of its class."""


class KernelBackend(Backend):
    """A backend made of kernels."""

    limits = Limits()
    operands: Operands = "host"
    """What library calls get here."""
    library: frozenset[str] = frozenset()
    """Primitives that run as NumPy calls without being a fallback."""
    fusers: tuple[str, ...] = ("instruction", "merger", "sibling", "producer_consumer")

    def __init__(self, name: str) -> None:
        self.name = name
        for cls in type(self).__mro__:  # errors end at the user's line, not in a backend's package
            if issubclass(cls, KernelBackend) and getattr(sys.modules.get(cls.__module__), "__package__", ""):
                register_internal(os.path.dirname(inspect.getfile(cls)))

    @abstractmethod
    def empty(self, nbytes: int, device: Device) -> Buffer:
        """Memory with any contents."""

    @abstractmethod
    def compile_plan(self, plan: Plan, options: CompileOptions, journal: Journal) -> Executable:
        """The executable that follows ``plan``; called inside ``with consing():``. ``journal`` is for its report."""

    def source(self, kernel: Kernel) -> str:
        """The kernel's program text, for reports."""
        return ""

    @property
    def index_dtype(self) -> np.dtype:  # pyright: ignore[reportIncompatibleVariableOverride]  # of the limits
        return expected(self.limits, Limits, f"{type(self).__name__}.limits is", "Limits").index_dtype

    def why_no_dtype(self, dtype: Any) -> str | None:
        return None

    def opened(self) -> None:
        """What the class says is looked at; and plugins are asked for fusers, which imports them."""
        for name, kinds, what in SAID:
            expected(getattr(self, name), kinds, f"{type(self).__name__}.{name} is", what)
        if self.operands not in OPERANDS:
            raise PluginError(f"{type(self).__name__}.operands is {self.operands!r}, not one of {', '.join(OPERANDS)}")
        registry.fusers(self)

    # --- compilation ------------------------------------------------------------------------------------------------

    def compile(self, jaxpr: ClosedJaxpr, options: CompileOptions) -> Executable:
        """Lowers, fuses, plans and emits.

        Raises:
          NoLowering: a primitive can't run here.
        """
        with collection_paused(), consing():
            c = self.compilation(options)
            plan = plan_of(jaxpr, c)
            with c.journal.phase("emit"):
                return self.compile_plan(plan, options, c.journal)

    def meanings(self, jaxpr: ClosedJaxpr, options: CompileOptions, inputs: Sequence[Any]) -> Sequence[Meaning]:
        """After lowering, and after each pass over the graph."""
        with consing():
            return list(meanings(jaxpr, self.compilation(options), inputs))

    def compilation(self, options: CompileOptions) -> Compilation:
        """What the passes of one compilation may ask."""
        limits = expected(self.limits_of(options.device), Limits, "limits_of gave", "Limits")
        journal = Journal(options.stages)
        return Compilation(
            self.rules(limits),
            limits,
            expected(self.chosen_fusers(), Sequence, "chosen_fusers gave", "the fusers"),
            options.donated,
            options.members,
            options.eager,
            journal,
        )

    def rules(self, limits: Limits) -> Rules:
        asked = self.declines if self.declines_any() else None  # for each equation
        target = Target(self.name, limits, self.operands, asked)
        own = expected(self.lowerings(), Mapping, "lowerings gave", "a mapping of offers")
        family = expected(self.family_lowerings(), Mapping, "family_lowerings gave", "a mapping of lowerings")
        host = expected(self.host_rule(), Callable, "host_rule gave", "a function of a primitive")
        return Rules(target, own, family, SHARED, host)

    def limits_of(self, device: Device) -> Limits:
        """Devices of one backend may differ."""
        return self.limits

    def host_rule(self) -> Callable[[Primitive], Call | str]:
        """How a primitive without kernels runs on the host, or why it doesn't."""
        return host_rule(self.name, self.library)

    def lowerings(self) -> Mapping[Primitive, Sequence[Offer]]:
        """What plugins bring for this backend, and it brings itself, in the order in which they are asked."""
        return registry.lowerings(self)

    def family_lowerings(self) -> Family:
        """What backends of this kind share, beside what all kernel backends share."""
        return {}

    def chosen_fusers(self) -> list[Chosen]:
        """The fusers to run, in order."""
        return registry.chosen_fusers(self, settings.fusers(), self.fusers)
