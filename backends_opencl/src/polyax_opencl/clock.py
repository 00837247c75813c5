"""When a device comes to points in its queue: for traces, which ask afterwards."""

from __future__ import annotations

import time

from polyax_kernels.api.gpu import Stamp
from polyax_opencl.probe import cl

PROFILED = cl.command_queue_properties.PROFILING_ENABLE
TRIES = 5
SECONDS = 10
"""How long the two clocks are taken to run alike."""


class Clock:
    """The device's, and a queue in which nothing else is, to compare it with the host's."""

    def __init__(self, context: cl.Context, device: cl.Device) -> None:
        self.queue = cl.CommandQueue(context, device, properties=PROFILED)
        self._offset = 0
        self._known_until = 0

    def stamp(self, event: cl.Event) -> Stamp:
        """When ``event``, of a queue whose commands keep their times, has ended."""
        if time.perf_counter_ns() > self._known_until:
            self._compare()
        offset = self._offset

        def when() -> int | None:
            try:
                event.wait()
                return event.profile.end + offset
            except cl.Error:  # what failed tells whoever waits for its results
                return None

        return when

    def _compare(self) -> None:
        """What to add to the device's time, to have that of the host: the least of some, since answers may be late."""
        found: list[int] = []
        for _ in range(TRIES):
            marker = cl.enqueue_marker(self.queue)
            self.queue.finish()
            found.append(time.perf_counter_ns() - marker.profile.end)
        self._offset = min(found)
        self._known_until = time.perf_counter_ns() + SECONDS * 10**9
