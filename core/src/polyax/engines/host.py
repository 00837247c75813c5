"""What stays on the host: NumPy runs it, if that is allowed. Must not know any engine or device."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from polyax.ir.config import config
from polyax.ir.errors import NoLowering
from polyax.ir.jaxpr import ClosedJaxpr, walk_eqns
from polyax.reference import rules as rules  # fills the table that the interpreter looks into
from polyax.reference.decomposing import decomposed
from polyax.reference.interpreter import evaluate, rule_of
from polyax.runtime.contract.tracebacks import warn_user

Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]

FACTORS = ("cholesky", "triangular_solve", "lu", "qr", "eigh", "svd", "eig", "householder_product", "geqrf")
NUMERIC = (*FACTORS, "hessenberg", "tridiagonal", "schur", "fft", "sort", "top_k")
"""What NumPy calls compiled libraries for (LAPACK, pocketfft, its own sort)."""
CALLBACKS = ("pure_callback", "io_callback", "debug_callback", "debug_print")
COLLECTIVES = ("psum", "pmax", "pmin", "all_gather", "reduce_scatter", "all_to_all", "ppermute", "axis_index")
LIBRARY = frozenset((*NUMERIC, *CALLBACKS, *COLLECTIVES))
"""What runs on the host without being a fallback: libraries, users' functions, and meetings of devices there."""

_warned: set[tuple[str, str]] = set()


def on_host(
    program: ClosedJaxpr, platform: str, reasons: Mapping[str, str] | None = None, library: Collection[str] = ()
) -> Run:
    """``program`` through NumPy, as the reference backend runs it: what a backend does for what its engine doesn't. It
    takes the arrays of its constants and inputs. As for all backends, ``POLYAX_HOST_FALLBACK`` says whether that is
    allowed, forbidden, or warned of once.

    Args:
      platform: whose programs run here.
      reasons: why they do, by primitive.
      library: primitives that may always run here, since a library of the host is the best there is for them.

    Raises:
      NoLowering: it is forbidden, or NumPy has no rule.
    """
    run = decomposed(program).jaxpr
    for eqn in walk_eqns(run):
        rule_of(eqn)
    for name in dict.fromkeys(e.primitive.name for e in program.eqns):
        reason = (reasons or {}).get(name, "its engine doesn't take it")
        if name not in library and (why_not := why_not_on_host(platform, name, reason)):
            raise NoLowering(f"{platform} can't run {name!r}: {reason}; on the host: {why_not}")
    return lambda arrays: [np.asarray(x, order="C") for x in evaluate(run, arrays)]


def why_not_on_host(platform: str, name: str, reason: str) -> str | None:
    """None if NumPy may take the place of ``platform`` for a primitive; users are warned once. Else why not."""
    if config.host_fallback == "error":
        return "config.host_fallback is 'error'"
    if config.host_fallback == "warn" and (platform, name) not in _warned:
        _warned.add((platform, name))
        warn_user(
            f"{name!r} runs in NumPy on the host, not on {platform}: {reason}; POLYAX_HOST_FALLBACK=allow silences "
            "this, =error forbids it"
        )
    return None
