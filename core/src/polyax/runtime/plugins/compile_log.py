"""A built-in plugin that tells listeners of each compilation, and logs it while ``config.log_compiles`` is set."""

from __future__ import annotations

import logging

from polyax import monitoring
from polyax.ir.config import config
from polyax.runtime.contract.hooks import CompileEvent, hookimpl

logger = logging.getLogger("polyax")


@hookimpl
def polyax_compiled(event: CompileEvent) -> None:
    monitoring.record_event_duration_secs(monitoring.COMPILED, event.seconds, fun_name=event.name)
    if config.log_compiles:
        where = event.mesh or event.device
        logger.warning("Finished compilation of %s for %s in %.3f s", event.name, where, event.seconds)
