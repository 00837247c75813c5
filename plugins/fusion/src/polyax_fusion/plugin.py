"""The hooks of this distribution. Imports nothing of the compiler until a backend asks for fusers."""

from __future__ import annotations

from collections.abc import Iterable

from polyax.runtime.contract.backend import Backend
from polyax.runtime.contract.hooks import FusionPass, hookimpl
from polyax_kernels import settings  # noqa: F401  # declares them


@hookimpl
def polyax_fusers(backend: Backend) -> Iterable[FusionPass]:
    """The fusers; a backend's ``fusers`` says which of them run."""
    from polyax_fusion.fusers import FUSERS

    return FUSERS
