"""Memory over time: how many bytes are in use on each device, looked at now and then while a trace is taken."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator

from polyax.profiler.events import Recording
from polyax.runtime.arrays.array import all_arrays
from polyax.runtime.contract.backend import Backend
from polyax.runtime.plugins.registry import registry

PAUSE, SHARE = 0.02, 100
"""Seconds between two looks at the least, and how many times longer than a look they are: where devices have no
statistics, all arrays are looked for, and that takes longer the more objects there are."""


def bytes_in_use() -> Iterator[tuple[str, int]]:
    """By the name of each device that is open; those on the host's memory share it, and are one. What a device doesn't
    tell is counted: the bytes of live arrays."""
    living: Counter[Backend] | None = None
    for backend in registry.opened():
        for device in backend.devices()[: 1 if backend.in_host_memory else None]:
            stats = device.memory_stats() or {}
            if "bytes_in_use" in stats:
                yield backend.name if backend.in_host_memory else str(device), stats["bytes_in_use"]
            elif device is backend.devices()[0]:
                living = _live_bytes() if living is None else living
                yield backend.name, living[backend]


def _live_bytes() -> Counter[Backend]:
    """Parts of arrays on several devices are arrays as well."""
    found: Counter[Backend] = Counter()
    for x in all_arrays():
        if (device := x._device) is not None and not x.is_deleted():
            found[device.backend] += x.nbytes
    return found


class Watcher(ABC):
    """A thread that looks now and then, from when it is made until it is stopped."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"polyax {type(self).__name__}", daemon=True)
        self._thread.start()

    @abstractmethod
    def look(self) -> None: ...

    def stop(self) -> None:
        """Looks for a last time."""
        self._stopped.set()
        self._thread.join()
        self.look()

    def _run(self) -> None:
        pause = 0.0
        while not self._stopped.wait(pause):
            start = time.thread_time()
            self.look()
            pause = max(PAUSE, SHARE * (time.thread_time() - start))


class Sampler(Watcher):
    """Tells ``recording`` how many bytes are in use."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        super().__init__()

    def look(self) -> None:
        for name, value in bytes_in_use():
            self._recording.count(f"bytes in use on {name}", value)
