"""The queue of a device, as the core sees it: programs go to the device at once, in the calling thread.

Those that call the host in between (a sort in NumPy) wait for the device, so they are put into its queue by a thread of
their own, and so is everything that comes after them until it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polyax.runtime.contract.backend import AT_ONCE, Buffer, Token
from polyax.runtime.contract.probes import declare, told_queue
from polyax.runtime.contract.queue import HostQueue, Task, serving
from polyax_kernels.gpu.runtime import DeviceError, Runtime


class GpuQueue(HostQueue):
    """``cost`` of a program: 0 if nothing in it waits."""

    def __init__(self, name: str, runtime: Runtime) -> None:
        super().__init__(name)
        self.runtime = runtime
        self.finish_at_exit()

    def run(
        self, work: Callable[[], None], inputs: Sequence[Buffer], cost: int, *, joined: bool = False
    ) -> Token | None:
        """Runs ``work`` after ``inputs`` and everything before it. Where it fails, the task holds the error."""
        after = [t for b in inputs if (t := b.awaits()) is not None]
        if serving():
            return AT_ONCE.run(work, inputs, cost)
        if self.tasks or cost or not all(t.done for t in after):
            return self._submit(work, after, joined=joined)
        return next((t for t in after if t.error is not None), None) or attempted(work)

    def synchronize(self) -> None:
        super().synchronize()
        self.runtime.synchronize()


def attempted(work: Callable[[], None]) -> Task | None:
    """Runs ``work`` now. If the device fails, that is the fault of what comes out, and known when somebody asks."""
    try:
        work()
    except DeviceError as e:
        task = Task(work)
        task.run, task.error, task.done = None, e, True
        return task
    return None


declare(GpuQueue, "run", told_queue)
