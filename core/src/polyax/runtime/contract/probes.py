"""Places where traces learn what happens: methods that are replaced while one is taken, so that they cost nothing else.

Whoever runs work declares such probes, plugins too; who takes traces fills them. Must not know what becomes of events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from polyax.ir.source import Place
from polyax.runtime.contract.queue import HostQueue

Stamp = Callable[[], "int | None"]
"""A point in a device's queue: when the device came to it, as ``time.perf_counter_ns`` says; waits for that. None if
the device failed."""


class ToldPart(NamedTuple):
    """What an event tells, but for the time."""

    kind: str
    title: str
    facts: Mapping[str, Any]


class Telling(Protocol):
    """A trace that is being taken."""

    def add(self, kind: str, name: str, start: int, args: Mapping[str, Any]) -> None:
        """Something that began at ``start``, of ``time.perf_counter_ns``, and has ended now. It goes to the line of the
        device that this thread works for, else to that of the thread."""

    def meet_thread(self) -> int:
        """Takes down the name of this thread, of which ``called`` will tell; returns its number."""
        ...

    def called(self, thread: int, start: int, end: int, kind: str, title: str, place: Place | None) -> None:
        """A call of the user's that nothing in Python has told of, and where the user made it. Only at the end."""

    def between(self, parts: Sequence[ToldPart], stamps: Sequence[Stamp]) -> None:
        """Parts of the work that this thread gives its device, each from one point of the queue to the next."""

    def ran(self, thread: int, device: str | None, parts: Sequence[ToldPart], times: Sequence[int]) -> None:
        """What ``thread`` did for the call, or the device, that it was at: each part from one time to the next.
        ``device``: where calls do their work themselves. Only at the end."""

    def at_end(self, ask: Callable[[], None]) -> None:
        """``ask`` is called when the trace ends."""

    def work(self, device: str, work: Callable[[], None]) -> Callable[[], None]:
        """``work``, told as what the device does for the call that this thread is in."""
        ...


class Probe(NamedTuple):
    """``replacement(before, telling)`` stands in for the method ``name`` of a class, or the function of a module."""

    owner: Any
    name: str
    replacement: Callable[[Any, Telling], Any]


probes: list[Probe] = []
filling: list[Callable[[Probe], None]] = []
"""What fills probes that are declared while a trace is taken: backends are often imported by the first call in it."""


def declare(owner: Any, name: str, replacement: Callable[[Any, Telling], Any]) -> None:
    """Adds a probe; see ``Probe``."""
    probes.append(probe := Probe(owner, name, replacement))
    for fill in filling:
        fill(probe)


def told_queue(before: Callable[..., Any], telling: Telling) -> Callable[..., Any]:
    """``HostQueue.run``, and that of classes derived from it, which tells of each program that the device works on."""

    def run(queue: Any, work: Callable[[], None], inputs: Sequence[Any], cost: int, **options: Any) -> Any:
        return before(queue, telling.work(queue.name, work), inputs, cost, **options)

    return run


declare(HostQueue, "run", told_queue)
