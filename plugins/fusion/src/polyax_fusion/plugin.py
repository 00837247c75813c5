"""The hooks of this distribution. Imports nothing of the compiler until a backend asks for fusers."""

from __future__ import annotations

from collections.abc import Iterable

from polyax.backend import Backend, FusionPass, hookimpl
from polyax_kernels.api import settings  # noqa: F401  # declares them

polyax_requires = ">=1,<2"


@hookimpl
def polyax_fusers(backend: Backend) -> Iterable[FusionPass]:
    """The fusers; a backend's ``fusers`` says which of them run."""
    from polyax_fusion.fusers import FUSERS

    return FUSERS
