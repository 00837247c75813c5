"""What plugins are told of compiled programs, and what they draw of them."""

from __future__ import annotations

from typing import Any

from polyax.ir.config import config
from polyax.runtime.contract.hooks import CompileEvent
from polyax.runtime.contract.tracebacks import warn_user
from polyax.runtime.plugins.advice import INSPECTION, no_inspection
from polyax.runtime.plugins.registry import registry


def notify_compiled(event: CompileEvent) -> None:
    """Tells plugins that an executable was built."""
    for _ in registry.ask(event.device.platform, "polyax_compiled", event=event):
        pass
    if config.dump is not None and (reason := _why_no_inspection()):
        warn_user(no_inspection("POLYAX_DUMP is set, and nothing is written", reason))


def draw(event: CompileEvent) -> Any:
    """The picture that the first plugin that can makes of a compiled program.

    Raises:
      ImportError: there is none; the text says what to install.
    """
    for _, drawing in registry.ask(event.device.platform, "polyax_draw", event=event):
        return drawing
    raise ImportError(no_inspection("no plugin draws programs", _why_no_inspection()))


def _why_no_inspection() -> str | None:
    """None if the plugin that draws and writes programs is there, else why not."""
    found = [p for p in registry.plugins() if p.entry == INSPECTION]
    if any(p.status == "loaded" for p in found):
        return None
    return "; ".join(f"{p.title}: {p.cause}" for p in found) or "polyax-inspect is not installed"
