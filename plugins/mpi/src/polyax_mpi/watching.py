"""A process's connection to the watchman: what it waits for, and its last word.

Whoever waits says so only when it takes long, so that waiting costs nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

LONG = 1.0
"""Seconds after which the watchman is told of a wait."""


def start_watchman(size: int, token: str, address: str, patience: float) -> int:
    """Starts it as a process of its own, which outlives all that it watches; returns the port that it listens on."""
    program = Path(__file__).with_name("watchman.py")
    started = subprocess.Popen(
        [sys.executable, "-I", "-S", str(program), str(size), token, address, str(patience)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert started.stdout is not None
    return int(started.stdout.readline())


class Watch:
    """``about``: where this process is, for messages."""

    def __init__(self, address: tuple[str, int], token: str, rank: int, about: str, heartbeat: float) -> None:
        self._socket = socket.create_connection(address, timeout=30)
        self._socket.settimeout(None)
        keep_alive(self._socket, heartbeat)
        self._sending = threading.Lock()
        self._waits: dict[int, tuple[float, str, Sequence[int]]] = {}
        self._told: set[int] = set()
        self._counting = threading.Lock()
        self._running: Counter[str] = Counter()
        self._numbers = itertools.count()
        self._open = True
        self._send(token=token, rank=rank, about=about)
        threading.Thread(target=self._listen, name="polyax-watch", daemon=True).start()
        threading.Thread(target=self._tell, name="polyax-waits", daemon=True).start()

    def _send(self, **message: Any) -> None:
        with self._sending, contextlib.suppress(OSError):
            self._socket.sendall(json.dumps(message).encode() + b"\n")

    def count(self, program: str, more: int) -> None:
        """How often a program is under way here has changed."""
        with self._counting:
            self._running[program] += more

    @contextlib.contextmanager
    def waiting(self, what: str, ranks: Sequence[int]) -> Generator[None]:
        """Inside of the block this process waits for those ``ranks``."""
        number = next(self._numbers)
        self._waits[number] = (time.monotonic(), what, ranks)
        try:
            yield
        finally:
            del self._waits[number]

    def _tell(self) -> None:
        while self._open:
            time.sleep(LONG / 2)
            now = time.monotonic()
            long = {n: w for n, w in list(self._waits.items()) if now - w[0] > LONG}
            running = [program for program, n in list(self._running.items()) if n]
            for n in long.keys() - self._told:
                self._send(wait=n, what=long[n][1], ranks=list(long[n][2]))
            if long:
                self._send(running=running)
            for n in self._told - long.keys():
                self._send(went_on=n)
            self._told = set(long)

    def _listen(self) -> None:
        """Ends this process when the watchman says so."""
        with contextlib.suppress(OSError):
            if self._socket.recv(1) and self._open:
                sys.stdout.flush()
                os._exit(1)

    def failed(self, message: str) -> None:
        """This process ends by an error; returns once the watchman has written that."""
        self._open = False
        self._send(failed=message)
        with contextlib.suppress(OSError):
            self._socket.settimeout(2)
            self._socket.recv(1)

    def leave_to_parent(self) -> None:
        """In a process that was forked off: says nothing more, also not by its end."""
        self._open = False
        self._sending = threading.Lock()  # a thread that isn't here may have held it
        self._socket.close()

    def close(self) -> None:
        """This process asks nothing more of the others."""
        self._open = False
        self._send(bye=True)


def keep_alive(connection: socket.socket, seconds: float) -> None:
    """Has the system find out within so many seconds that the other machine is gone."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {"TCP_KEEPIDLE": seconds / 2, "TCP_KEEPINTVL": seconds / 8, "TCP_KEEPCNT": 4}
    for name, value in options.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), max(1, int(value)))
