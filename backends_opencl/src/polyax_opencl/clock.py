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
    """A second queue, whose commands have times: markers in it wait for those of the first, which has none to keep."""

    def __init__(self, context: cl.Context, device: cl.Device) -> None:
        self.queue = cl.CommandQueue(context, device, properties=PROFILED)
        self._offset = 0
        self._known_until = 0

    def stamp(self, event: cl.Event) -> Stamp:
        """When ``event`` has ended."""
        if time.perf_counter_ns() > self._known_until:
            self._compare()
        marker, offset = cl.enqueue_marker(self.queue, wait_for=[event]), self._offset

        def when() -> int | None:
            try:
                marker.wait()
                return marker.profile.end + offset
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
