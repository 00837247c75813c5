"""The last resort of a primitive without kernels: the NumPy reference rules, on the host. Never silent unless asked."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir.config import config
from polyax.ir.primitive import Primitive
from polyax.reference.interpreter import run_on_host
from polyax.reference.rules import RULES
from polyax.reference.rules_collective import reduce_into
from polyax.reference.rules_together import TOGETHER
from polyax_kernels.lower.lowering import Call, CallContext

_warned: set[tuple[str, str]] = set()


NUMERIC = (
    "sort",
    "top_k",
    "cholesky",
    "triangular_solve",
    "lu",
    "qr",
    "eigh",
    "svd",
    "eig",
    "householder_product",
    "geqrf",
    "hessenberg",
    "tridiagonal",
    "schur",
    "fft",
)
"""What NumPy calls compiled libraries for (LAPACK, pocketfft, its own sort)."""
CALLBACKS = ("pure_callback", "io_callback", "debug_callback", "debug_print")
COLLECTIVES = ("psum", "pmax", "pmin", "all_gather", "reduce_scatter", "all_to_all", "ppermute", "axis_index")
LIBRARY = frozenset((*NUMERIC, *CALLBACKS, *COLLECTIVES))
"""What runs on the host without being a fallback: libraries, users' functions, and meetings of devices there."""


def host_rule(backend: str, library: frozenset[str] = frozenset()) -> Callable[[Primitive], Call | str]:
    """For ``Rules``: the fallback of a primitive, or why there is none. Those in ``library`` may always be used."""

    def choose(primitive: Primitive) -> Call | str:
        if primitive.name in library and primitive in RULES:
            return on_host(primitive)
        if config.host_fallback == "error":
            return "config.host_fallback is 'error'"
        if primitive not in RULES:
            return "no NumPy rule"
        if config.host_fallback == "warn" and (backend, primitive.name) not in _warned:
            _warned.add((backend, primitive.name))
            warnings.warn(
                f"{primitive.name!r} has no kernel on {backend} for these types and runs in NumPy on the host; "
                "POLYAX_HOST_FALLBACK=allow silences this, =error forbids it",
                stacklevel=2,
            )
        return on_host(primitive)

    return choose


REDUCTIONS = ("psum", "pmax", "pmin")
"""What members of a group write where it belongs, so that large sums are moved once."""


def on_host(primitive: Primitive) -> Call:
    """A call of the reference rule."""
    together = TOGETHER.get(primitive)
    if primitive.name in REDUCTIONS:
        return Call(
            lambda _, outs, args, **params: reduce_into(primitive.name, outs, args, **params), together=together
        )

    def run(_: CallContext, outs: Sequence[np.ndarray], args: Sequence[np.ndarray], **params: Any) -> None:
        results = run_on_host(primitive, args, params)
        for out, result in zip(outs, results, strict=True):
            out[...] = result

    return Call(run, together=together)
