"""Live memory of devices by the calls that made it, in the format of pprof: a gzipped protocol buffer.

The message is ``Profile`` of pprof's ``profile.proto``; the numbers of its fields stand beside what is written.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Mapping
from types import CodeType
from typing import Any

from polyax.ir.source import Source
from polyax.profiler.messages import chunk, number, packed
from polyax.runtime.arrays.devices import live_arrays
from polyax.runtime.arrays.origins import Calls, origin_of

UNKNOWN = "unknown: small arrays, or put by hand"
Held = Mapping[tuple[Calls, str], tuple[int, int]]
"""Number and bytes of live arrays, by the calls that made them and the device that they are on."""


def device_memory_profile(backend: str | None = None) -> bytes:
    """The live arrays on the devices of a platform, as a profile that ``pprof`` reads: number and bytes by the Python
    calls that made them, with the device as a label.

    Calls are known of arrays of at least 1 MiB that programs made; all others count together.

    >>> import gzip
    >>> b"bytes" in gzip.decompress(device_memory_profile())
    True
    """
    return encoded(held(backend))


def save_device_memory_profile(filename: str, backend: str | None = None) -> None:
    """Writes ``device_memory_profile`` to a file, for ``pprof --web FILE``."""
    with open(filename, "wb") as f:
        f.write(device_memory_profile(backend))


def held(backend: str | None = None) -> Held:
    """What ``device_memory_profile`` tells."""
    found: dict[tuple[Calls, str], tuple[int, int]] = {}
    for x in live_arrays(backend):
        for part in x.parts:
            count, nbytes = found.get(key := (origin_of(x), str(part.device)), (0, 0))
            found[key] = count + 1, nbytes + part.nbytes
    return found


def encoded(found: Held) -> bytes:
    """The same as a gzipped protocol buffer."""
    message = _Profile()
    for (calls, device), values in found.items():
        message.sample(calls, values, {"kind": "buffer", "device": device})
    return gzip.compress(message.finish())


# --- the message ------------------------------------------------------------------------------------------------------


class _Profile:
    """A message in the making. Texts, functions and places are written once and known by their numbers."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {"": 0}
        self.functions: dict[CodeType | None, int] = {}
        self.places: dict[tuple[CodeType | None, int], int] = {}
        self.body = b""
        for name, unit in (("allocations", "count"), ("space", "bytes")):
            self.body += chunk(1, number(1, self.text(name)) + number(2, self.text(unit)))  # sample_type

    def text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def sample(self, calls: Calls, values: tuple[int, ...], labels: dict[str, str]) -> None:
        places = [self.place(code, at) for code, at in calls] or [self.place(None, 0)]
        written = packed(1, places) + packed(2, values)
        for key, value in labels.items():
            written += chunk(3, number(1, self.text(key)) + number(2, self.text(value)))
        self.body += chunk(2, written)

    def place(self, code: CodeType | None, at: int) -> int:
        line = Source(code, at).line if code else 0
        key = code, line
        if key not in self.places:
            self.places[key] = own = len(self.places) + 1
            function = self.function(code)
            line_message = number(1, function) + number(2, line)
            self.body += chunk(4, number(1, own) + chunk(4, line_message))  # location
        return self.places[key]

    def function(self, code: CodeType | None) -> int:
        if code not in self.functions:
            self.functions[code] = own = len(self.functions) + 1
            name = self.text(code.co_name if code else UNKNOWN)
            file = self.text(code.co_filename if code else "")
            start = code.co_firstlineno if code else 0
            mangled = 0  # else pprof takes the name for one of C++, and <lambda> for the parameters of a template
            fields: tuple[Any, ...] = (own, name, mangled, file, start)
            self.body += chunk(5, b"".join(number(n, v) for n, v in enumerate(fields, 1)))
        return self.functions[code]

    def finish(self) -> bytes:
        texts = b"".join(chunk(6, text.encode()) for text in self.texts)
        return self.body + texts + number(9, time.time_ns())
