"""A built-in plugin that tells listeners of each compilation, and logs it: for users while ``config.log_compiles`` is
set, else for those who debug."""

from __future__ import annotations

import logging

from polyax import monitoring
from polyax.ir.config import config
from polyax.runtime.contract.hooks import CompileEvent, hookimpl

logger = logging.getLogger("polyax")


@hookimpl
def polyax_compiled(event: CompileEvent) -> None:
    monitoring.record_event_duration_secs(monitoring.COMPILED, event.seconds, fun_name=event.name)
    level = logging.WARNING if config.log_compiles else logging.DEBUG
    if logger.isEnabledFor(level):
        name = event.name if "(" in event.name else f"jit({event.name})"
        whose, types = "local" if event.mesh else "global", tuple(event.jaxpr.in_avals)
        logger.log(level, "Compiling %s with %s shapes and types %s.", name, whose, types)
        where = event.mesh or event.device
        logger.log(level, "Finished compilation of %s for %s in %.9f sec", name, where, event.seconds)
