"""Says what hangs: programs that haven't ended ``config.launch_timeout`` seconds after they were launched.

Nothing is interrupted: a device can't be. Who waits learns for what, and may end the wait with Ctrl-C.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyax.ir.config import config
from polyax.ir.source import user_source
from polyax.runtime.contract import edge
from polyax.runtime.contract.backend import Device, Executable
from polyax.runtime.contract.whose import owner


@dataclass(eq=False)
class _Run:
    """A program that was launched."""

    name: str
    device: Device
    progress: Callable[[], str]
    source: Any
    timeout: float
    began: float = field(default_factory=time.monotonic)
    results: Sequence[Any] | None = None
    """None, while the launch hasn't returned."""
    token: Any = None
    told: bool = False

    def ended(self) -> bool:
        """Also if nobody can say: then this is told."""
        try:
            return self._ended()
        except Exception as e:
            told = (
                f"polyax: {owner(self.device.backend).title} can't say whether program {self.name!r} has ended: {e!r}"
            )
            print(told, file=sys.stderr, flush=True)
            return True

    def _ended(self) -> bool:
        return self.results is not None and all(b.ready() for b in self.results) and (not self.token or self.token.done)

    def text(self, behind: Sequence[_Run]) -> str:
        where = (
            "its launch hasn't returned"
            if self.results is None
            else "its launch has returned, its results aren't ready"
        )
        at, waiting = self.progress(), ", ".join(repr(run.name) for run in behind)
        return (
            f"polyax: program {self.name!r} on {self.device} ({owner(self.device.backend).title}) hasn't ended "
            f"after {self.timeout:g} s; it was asked for at {self.source}; {where}"
            + (f"; it is at {at}" if at else "")
            + (f"; behind it wait {waiting}" if waiting else "")
            + ". Ctrl-C ends the wait; POLYAX_LAUNCH_TIMEOUT=0 ends these messages."
        )


_runs: list[_Run] = []
_changed = threading.Condition()
_thread: list[threading.Thread] = []


def watched(launch: edge.Launch, executable: Executable, device: Device, name: str) -> edge.Launch:
    """``launch``, watched for as long as the setting says now."""
    timeout = float(config.launch_timeout)

    def run(buffers: Sequence[Any], queue: Any) -> tuple[Sequence[Any], Any]:
        watch = _Run(name, device, executable.progress, user_source(), timeout)
        _begin(watch)
        try:
            watch.results, watch.token = made = launch(buffers, queue)
        except BaseException:
            _end(watch)
            raise
        return made

    return run


def _begin(run: _Run) -> None:
    with _changed:
        _runs.append(run)
        if not _thread or not _thread[0].is_alive():  # it stays behind in a process that forks
            _thread[:] = [threading.Thread(target=_watch, name="polyax-watch", daemon=True)]
            _thread[0].start()
        _changed.notify_all()


def _end(run: _Run) -> None:
    with _changed:
        if run in _runs:
            _runs.remove(run)


def _watch() -> None:
    while True:
        with _changed:
            while not _runs:
                _changed.wait()
            _runs[:] = [run for run in _runs if not run.ended()]
            now = time.monotonic()
            late = [run for run in _runs if not run.told and now - run.began >= run.timeout]
            for run in late:
                run.told = True
                behind = [other for other in _runs if other.device is run.device and other.began > run.began]
                print(run.text(behind), file=sys.stderr, flush=True)
            pause = min([run.timeout for run in _runs], default=0) / 4
        time.sleep(pause)
