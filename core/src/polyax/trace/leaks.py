"""``checking_leaks``: a traced function must not leave its tracers behind, in globals or attributes or closures.

Asks the garbage collector, which takes long: only while somebody looks for a leak.
"""

from __future__ import annotations

import gc
from typing import Any

from polyax.ir.config import config
from polyax.trace.tracer import Trace, Tracer


def check_leaks(trace: Trace, of: Any) -> None:
    """For the end of a trace, when nobody but the user can still hold tracers.

    Raises:
      Exception: there are some; their types, and where they were computed, are told.
    """
    if not config.check_tracer_leaks:
        return
    gc.collect()
    left = [x for x in gc.get_referrers(trace) if isinstance(x, Tracer)]
    if left:
        shown = "".join(f"\n  {x.aval}, held by {_holder(x, left)}.{x.origin()}" for x in left)
        raise Exception(
            f"Leaked trace of {of or 'a function'}: its tracers outlive it. Leaked tracer(s):{shown}\n"
            "Return such values from the function instead of keeping them."
        )


def _holder(x: Tracer, left: list[Any]) -> str:
    holders = [h for h in gc.get_referrers(x) if h is not left]
    return " and ".join(sorted({f"a {type(h).__name__}" for h in holders if type(h).__name__ != "frame"})) or "a frame"
