"""The process that watches the others: ``python watchman.py SIZE TOKEN ADDRESS PATIENCE``.

Each process keeps a connection to it. One that breaks without a last word is a process that was killed or crashed; the
first to break is the one to name, as its end is what ends the others. Imports the standard library alone: it must start
at once and need nothing.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import sys
import time
from typing import Any

GRACE = 2.0
"""Seconds that must pass before waits that can't end are taken for what they are."""


LONGEST = 1 << 16
"""Bytes of a line that are read from a connection that hasn't said who it is."""


class Watched:
    """One process: ``waits`` are what it has waited for long, ``running`` the programs that are under way meanwhile,
    ``ended`` is when it took leave."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.rank = -1
        self.about = ""
        self.waits: dict[int, tuple[str, list[int], float]] = {}
        self.running: set[str] = set()
        self.ended: float | None = None
        self.pending = b""


def _is_busy(one: Watched, other: Watched) -> bool:
    """Whether ``one`` is still on its way in a program in which ``other`` waits."""
    return bool(_programs(other) & one.running - _programs(one))


def _programs(one: Watched) -> set[str]:
    """Those in which it waits, in a collective ``of`` them."""
    return {program for what, _, _ in one.waits.values() for _, of, program in [what.partition(" of ")] if of}


class Watchman:
    def __init__(self, size: int, token: str, address: str, patience: float) -> None:
        self.size, self.token = size, token
        self.until = time.monotonic() + patience
        self.listener = socket.create_server((address, 0), backlog=size)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.known: dict[int, Watched] = {}
        self.closed = 0

    def serve(self) -> None:
        """Until all are gone."""
        print(self.listener.getsockname()[1], flush=True)
        while self.closed < self.size and (len(self.known) == self.size or time.monotonic() < self.until):
            for key, _ in self.selector.select(timeout=0.5):
                if key.data is None:
                    connection, _ = self.listener.accept()
                    self.selector.register(connection, selectors.EVENT_READ, Watched(connection))
                else:
                    self.read(key.data)
            self.look_for_waits_without_end()

    def read(self, one: Watched) -> None:
        try:
            data = one.connection.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self.gone(one)
            return
        *lines, one.pending = (one.pending + data).split(b"\n")
        try:
            for line in lines:
                self.heard(one, json.loads(line))
            stranger = one.rank < 0 and len(one.pending) > LONGEST
        except (ValueError, LookupError, TypeError, AttributeError, PermissionError):
            stranger = True
        if stranger:  # anybody may connect to a port
            self.forget(one)

    def heard(self, one: Watched, message: dict[str, Any]) -> None:
        if one.rank < 0 and message.get("token") != self.token:
            raise PermissionError("it doesn't know the token")
        elif "token" in message:
            one.rank, one.about = message["rank"], message["about"]
            self.known[one.rank] = one
        elif "wait" in message:
            one.waits[message["wait"]] = (message["what"], message["ranks"], time.monotonic())
        elif "went_on" in message:
            one.waits.pop(message["went_on"], None)
        elif "running" in message:
            one.running = set(message["running"])
        elif "failed" in message:
            self.end_all(f"{self.name(one.rank)} failed: {message['failed'].rstrip('.')}.")
        else:
            one.ended = time.monotonic()

    def forget(self, one: Watched) -> None:
        self.selector.unregister(one.connection)
        one.connection.close()

    def gone(self, one: Watched) -> None:
        self.forget(one)
        if one.rank < 0:
            return
        self.closed += 1
        if one.ended is None:
            self.end_all(f"{self.name(one.rank)} ended without a word: it was killed, or it crashed.")

    def name(self, rank: int) -> str:
        return f"process {rank} of {self.size} ({self.known[rank].about})"

    def look_for_waits_without_end(self) -> None:
        """Who waits for one that has taken leave, or for one that waits for something else from the same processes."""
        now = time.monotonic()
        for one in self.known.values():
            for what, ranks, since in one.waits.values():
                others = [self.known[r] for r in ranks if r in self.known and r != one.rank]
                reasons = ((other, self.why_endless(one, other, now)) for other in others if now - since > GRACE)
                for other, reason in reasons:
                    if reason is not None:
                        self.end_all(f"{self.name(one.rank)} waits in {what} for {self.name(other.rank)}, {reason}.")

    def why_endless(self, one: Watched, other: Watched, now: float) -> str | None:
        """Waits of both that have something in common are on their way, and so is who is busy in the program."""
        if other.ended is not None:
            return "which has ended" if now - other.ended > GRACE else None
        mine = {what for what, _, _ in one.waits.values()}
        if any(what in mine for what, _, _ in other.waits.values()):
            return None
        if _is_busy(other, one) or _is_busy(one, other):
            return None
        theirs = [what for what, ranks, since in other.waits.values() if one.rank in ranks and now - since > GRACE]
        return f"which waits in {theirs[0]} for it: they run different programs" if theirs else None

    def end_all(self, message: str) -> None:
        """Says why, and ends all that are left."""
        sys.stderr.write(f"polyax: {message} All processes are ended.\n")
        sys.stderr.flush()
        for other in self.known.values():
            with contextlib.suppress(OSError):
                other.connection.sendall(b"!")
        sys.exit(1)


if __name__ == "__main__":
    size, token, address, patience = sys.argv[1:]
    Watchman(int(size), token, address, float(patience)).serve()
