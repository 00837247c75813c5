"""What becomes of programs on a backend of kernels with a part that is wrong, beside the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from plugins.faults.mutants import told

import polyax
from polyax.ir.errors import Disagreement, PluginError

PLATFORM, ENTRY = "numpy_kernels", "numpy_kernels.broken"
WHOSE = f"plugin '{ENTRY}' of polyax-broken 1.2.3"


class Outcome(NamedTuple):
    """What becomes of a program."""

    text: str = ""
    """What a user is told; "" if the results are right."""
    compared: bool = False
    """Whether that is told by who compares the results alone."""


class Cases:
    """Programs by name, each with its arguments."""

    def __init__(self, programs: Mapping[str, tuple[Callable[..., Any], Sequence[Any]]]) -> None:
        self._programs = programs
        self._right: dict[str, list[np.ndarray]] = {}

    def outcome(self, case: str) -> Outcome:
        want = self._on_reference(case)
        try:
            with polyax.config.override(checks=True):
                got = self._computed(case)
        except Exception as e:
            return Outcome(told(e))
        if all(np.allclose(g, w, rtol=1e-4, atol=1e-5, equal_nan=True) for g, w in zip(got, want, strict=True)):
            return Outcome()
        polyax.clear_caches()
        try:
            with polyax.config.override(debug_backend=PLATFORM):
                self._computed(case)
        except (Disagreement, PluginError) as e:
            return Outcome(told(e), True)
        return Outcome("wrong numbers in silence")

    def _computed(self, case: str) -> list[np.ndarray]:
        """The results of a program, and its inputs afterwards."""
        program, args = self._programs[case]
        inputs = [polyax.numpy.array(x) for x in args]
        results = polyax.tree_util.tree_leaves(polyax.jit(program)(*inputs))
        polyax.effects_barrier()
        return [np.asarray(x) for x in (*results, *inputs)]

    def _on_reference(self, case: str) -> list[np.ndarray]:
        if case not in self._right:
            with polyax.default_device("reference"):
                self._right[case] = self._computed(case)
        return self._right[case]
