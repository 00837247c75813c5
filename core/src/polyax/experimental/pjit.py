"""``polyax.experimental.pjit``: the name that ``jit`` had for programs on several devices."""

from polyax.api.jit import jit as pjit

__all__ = ["pjit"]
