"""The asynchronous queue of a host device: one thread that runs programs in order, shared by all host backends."""

from __future__ import annotations

import atexit
import collections
import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence

import numpy as np

from polyax.ir.config import config
from polyax.ir.primitive import ambient
from polyax.runtime.contract.backend import AT_ONCE, Buffer, Device, Queue, Token
from polyax.runtime.contract.whose import broken

INLINE_COST = 100_000
"""Programs of at most this many scalar operations or bytes run in the calling thread when nothing is ahead of them:
handing them over would take longer (about 20 microseconds) than running them."""
HELP_COST = 10 * INLINE_COST
"""Those of at most this many are run by a thread that waits for them before they have begun: to wake another one would
take longer. Longer ones aren't: nothing can interrupt it meanwhile."""


class Task(Token):
    """One program on a queue; its buffers share it. Finished when ``done`` is set, with ``error`` if it failed, and
    ``told`` once somebody got that. ``help``, if there is one, may run it in the thread that waits for it."""

    __slots__ = ("done", "error", "finished", "help", "run", "told")

    def __init__(self, run: Callable[[], None], help: Callable[[Task], None] | None = None) -> None:
        self.run: Callable[[], None] | None = run
        self.help = help
        self.done = False
        self.error: BaseException | None = None
        self.told = False
        self.finished = threading.Event()

    def execute(self) -> None:
        try:
            run, self.run = self.run, None
            assert run is not None
            run()
        except BaseException as e:  # kept for whoever waits
            self.error = e
        self.done = True
        self.finished.set()

    def wait(self) -> None:
        if not self.done:
            if self.help is not None:
                self.help(self)
            self.finished.wait()
        if self.error is not None:
            self.told = True
            raise self.error


class HostBuffer(Buffer):
    """Host memory (``data``: C-contiguous) and the task that is still to fill it, if any."""

    __slots__ = ("__weakref__", "data", "task")

    def __init__(self, data: np.ndarray, task: Token | None = None) -> None:
        self.data = data
        self.task: Token | None = task

    @property
    def nbytes(self) -> int | None:
        """Until the task is done, ``data`` may still be replaced."""
        return self.data.nbytes if self.task is None or self.task.done else None

    def awaits(self) -> Token | None:
        return self.task

    def ready(self) -> bool:
        return self.task is None or self.task.done

    def wait(self) -> None:
        task = self.task
        if task is not None:
            task.wait()
            self.task = None

    def address(self) -> int:
        return self.data.ctypes.data


_thread = threading.local()


def serving() -> bool:
    """Whether this thread works for a queue: it runs a user's callback, for which a program waits on some device. What
    it asks for must run at once: that device, or one that is to meet it in a collective, can't take up anything."""
    return getattr(_thread, "serves", False)


def serve() -> None:
    """From now on this thread works for a queue."""
    _thread.serves = True


class InterruptedProgram(RuntimeError):
    """A program won't be done: the user interrupted the process."""


_queues: weakref.WeakSet[HostQueue] = weakref.WeakSet()
_dropped = threading.Event()
"""Set when an interpreter ends that the user interrupted: what hasn't begun won't, and loops end."""


def check_wanted() -> None:
    """Raises an InterruptedProgram if the process ends and doesn't wait for what is queued."""
    if _dropped.is_set():
        raise InterruptedProgram("the process was interrupted (Ctrl-C) before this program was done")


class HostQueue(Queue):
    """Runs submitted work in order, on a thread of its own that starts with the first long program, or on one that
    waits for the work that is next."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tasks: collections.deque[Task] = collections.deque()
        """What was submitted and hasn't ended."""
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = False  # with the first task
        _queues.add(self)

    def forget(self) -> None:
        """In a child process, which has the thread that forked and no other: a lock that another one held stays held. A
        callback that forks goes on with the task that it belongs to."""
        self._wake, self._thread = threading.Condition(), None
        if not serving():
            self._busy = False
            self.tasks.clear()

    def run(
        self, work: Callable[[], None], inputs: Sequence[Buffer], cost: int, *, joined: bool = False
    ) -> Token | None:
        """Runs ``work`` after everything submitted before it and after what ``inputs`` wait for. What is ``joined``
        asks itself whether it is still wanted, since others wait for it.

        Returns None when it has run already, in the calling thread; an error is raised then. What a callback asks for
        runs at once: its own program waits for it.
        """
        if serving():
            return AT_ONCE.run(work, inputs, cost)
        if cost <= INLINE_COST and not self.tasks:
            for b in inputs:
                if (task := b.awaits()) is not None:
                    if not task.done:
                        break
                    b.wait()
            else:
                work()
                return None
        return self._submit(work, [t for b in inputs if (t := b.awaits()) is not None], cost <= HELP_COST, joined)

    def _submit(
        self, work: Callable[[], None], after: Sequence[Token], helped: bool = False, joined: bool = False
    ) -> Task:
        settings = config.restored(config.in_force(), config.call_key())  # callbacks and rules see those of who asks

        def run() -> None:
            for t in after:
                t.wait()
            if not joined:
                check_wanted()
            with settings:
                work()

        task = Task(run, self._help if helped else None)
        with self._wake:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name=f"polyax-{self.name}", daemon=True)
                self._thread.start()
                self.finish_at_exit()
            self.tasks.append(task)
            self._wake.notify()
        return task

    def _serve(self) -> None:
        while True:
            with self._wake:
                while self._busy or not self.tasks:
                    self._wake.wait()
                self._busy = True
            self._run_first()

    def _help(self, task: Task) -> None:
        """Runs ``task`` in the calling thread if it is the first and hasn't begun, and if that thread is at nothing
        else: a callback must not become part of a trace."""
        if serving() or ambient.trace is not None:
            return
        with self._wake:
            if self._busy or not self.tasks or self.tasks[0] is not task:
                return
            self._busy = True
        self._run_first()
        if isinstance(task.error, KeyboardInterrupt):  # this thread's, not the program's
            interrupt, task.error = (
                task.error,
                InterruptedProgram(
                    "the program that computes this was interrupted (Ctrl-C) before it was done; run it again"
                ),
            )
            task.told = True
            raise interrupt

    def _run_first(self) -> None:
        _thread.serves = True
        try:
            self.tasks[0].execute()
        finally:
            _thread.serves = False
            with self._wake:
                self.tasks.popleft()
                self._busy = False
                if self.tasks:
                    self._wake.notify()

    def finish_at_exit(self) -> None:
        """The interpreter waits for this queue before it ends. A process that forks leaves what runs to its parent."""
        _started[self] = os.getpid()

    def synchronize(self) -> None:
        """Returns when everything submitted so far has finished; errors stay with their buffers."""
        with self._wake:
            last = self.tasks[-1] if self.tasks and not serving() else None
        if last is not None:
            last.finished.wait()


def queue_of(device: Device) -> HostQueue:
    """That of a device which computes on the host.

    Raises:
      PluginError: it has one of another kind.
    """
    if isinstance(device.queue, HostQueue):
        return device.queue
    made = "devices on the host's memory get theirs from host_devices(backend, kind)"
    raise broken(device, f"the device's queue is {device.queue!r}, not a HostQueue: {made}")


def _forget() -> None:
    for queue in list(_queues):
        queue.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

_started: weakref.WeakKeyDictionary[HostQueue, int] = weakref.WeakKeyDictionary()
"""The queues that have begun to work, and in which process."""


@atexit.register
def _finish() -> None:
    """An interpreter that ends stops threads wherever they are, and unloads what a device's kernels still use; either
    aborts the process. After Ctrl-C, queued programs are dropped, and loops ask ``check_wanted`` now and then: what
    is waited for is a step of a program that runs already."""
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        _dropped.set()
    with contextlib.ExitStack() as waits:  # all of them, also after one that fails
        for queue, process in list(_started.items()):
            if process == os.getpid():
                waits.callback(queue.synchronize)
