"""A built-in plugin that logs each compilation while ``config.log_compiles`` is set."""

from __future__ import annotations

import logging

from polyax.ir.config import config
from polyax.runtime.contract.hooks import CompileEvent, hookimpl

logger = logging.getLogger("polyax")


@hookimpl
def polyax_compiled(event: CompileEvent) -> None:
    if config.log_compiles:
        where = event.mesh or event.device
        logger.warning("Finished compilation of %s for %s in %.3f s", event.name, where, event.seconds)
