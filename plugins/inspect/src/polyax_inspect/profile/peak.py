"""Where memory goes when most of it is in use: a thread that looks now and then, and keeps what it saw at the peak."""

from __future__ import annotations

from polyax.backend import registry
from polyax.profiler.memory import Held, held
from polyax.profiler.sampling import Watcher, bytes_in_use

GROWTH = 1.02
"""How much more has to be in use for another look at each array."""


class Peak(Watcher):
    """Live arrays, by who made them, when most memory was in use."""

    def __init__(self) -> None:
        self.arrays: Held = {}
        self.in_use = 0
        """Bytes of all devices then, what no array holds included."""
        super().__init__()

    def look(self) -> None:
        in_use = sum(nbytes for _, nbytes in bytes_in_use())
        if in_use <= GROWTH * self.in_use:
            return
        try:
            self.arrays = {key: values for b in registry.opened() for key, values in held(b.name).items()}
        except RuntimeError:  # one was deleted meanwhile: the next look may have more luck
            return
        self.in_use = in_use
