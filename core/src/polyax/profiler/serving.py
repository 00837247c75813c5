"""A server that other programs ask for profiles: ``/memory`` for that of memory, ``/trace?seconds=2`` for a trace."""

from __future__ import annotations

import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlparse

from polyax.profiler.memory import device_memory_profile
from polyax.profiler.traces import trace

_running: list[ThreadingHTTPServer] = []


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        asked = urlparse(self.path)
        if asked.path not in ("/memory", "/trace"):
            self.send_error(404, "ask for /memory or /trace?seconds=2")
            return
        try:
            seconds = float(parse_qs(asked.query).get("seconds", ["1"])[0])
            data = device_memory_profile() if asked.path == "/memory" else _traced(seconds)
        except (RuntimeError, ValueError) as e:
            self.send_error(409, str(e))
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/gzip")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: the program that is profiled owns the output."""


def _traced(seconds: float) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        with trace(folder):
            time.sleep(seconds)
        return next(Path(folder).rglob("*.trace.json.gz")).read_bytes()


def start_server(port: int, requires_backend: bool = True) -> ThreadingHTTPServer:
    """Starts a server on this machine's own address, in a thread; ``stop_server`` ends it. It speaks HTTP:
    ``curl localhost:9999/memory -o memory.prof``.

    Raises:
      ValueError: one is running.
    """
    if _running:
        raise ValueError("Only one profiler server can be active at a time.")
    server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    threading.Thread(target=server.serve_forever, name="polyax profiler", daemon=True).start()
    _running.append(server)
    return server


def stop_server() -> None:
    """Ends the server.

    Raises:
      ValueError: there is none.
    """
    if not _running:
        raise ValueError("No active profiler server.")
    server = _running.pop()
    server.shutdown()
    server.server_close()


def register_subprocess(pid: int, port: int) -> None:
    """Would include another process in the traces of this one; that isn't built."""
    raise NotImplementedError(
        f"register_subprocess: traces hold one process; ask the server of process {pid} itself, at port {port}"
    )
