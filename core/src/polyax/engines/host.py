"""What stays on the host: NumPy runs it, if that is allowed. Must not know any engine."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from polyax.ir.config import config
from polyax.ir.errors import NoLowering
from polyax.ir.jaxpr import ClosedJaxpr, walk_eqns
from polyax.reference import rules as rules  # fills the table that the interpreter looks into
from polyax.reference.decomposing import decomposed
from polyax.reference.interpreter import evaluate, rule_of

Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]

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
        if name not in library:
            _check_allowed(platform, name, (reasons or {}).get(name, "its engine doesn't take it"))
    return lambda arrays: [np.asarray(x, order="C") for x in evaluate(run, arrays)]


def _check_allowed(platform: str, name: str, reason: str) -> None:
    if config.host_fallback == "error":
        raise NoLowering(f"{platform} can't run {name!r}: {reason}; on the host: config.host_fallback is 'error'")
    if config.host_fallback == "warn" and (platform, name) not in _warned:
        _warned.add((platform, name))
        warnings.warn(
            f"{name!r} runs in NumPy on the host, not on {platform}: {reason}; POLYAX_HOST_FALLBACK=allow silences "
            "this, =error forbids it",
            stacklevel=2,
        )
