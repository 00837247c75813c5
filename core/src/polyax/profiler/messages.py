"""Protocol buffers, as far as profiles need them: fields of numbers, of bytes, and of messages, which are bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

WORD = 2**64
"""Numbers below zero are written as what they are modulo this."""


_SHORT = [bytes([n]) for n in range(0x80)]


def varint(n: int) -> bytes:
    """A number, seven bits in each byte, the lowest first."""
    if 0 <= n <= 0x7F:
        return _SHORT[n]
    n, out = n % WORD, bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def chunk(field: int, data: bytes) -> bytes:
    """A text or a message."""
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed(field: int, values: Iterable[int]) -> bytes:
    return chunk(field, b"".join(map(varint, values)))


def fields(data: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """The fields of a message, by their numbers.

    Raises:
      ValueError: this is no message.

    >>> list(fields(number(1, 300) + chunk(2, b"text")))
    [(1, 300), (2, b'text')]
    """
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _read_varint(data, at)
        elif kind == 1 and at + 8 <= len(data):
            (value,), at = struct.unpack("<d", data[at : at + 8]), at + 8
        elif kind == 2:
            size, at = _read_varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            raise ValueError(f"no field of a message begins at byte {at}")
        if at > len(data):
            raise ValueError("the message ends within a field")
        yield key >> 3, value


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins there, and where it ends."""
    value = shift = 0
    for n in range(at, min(at + 10, len(data))):
        value |= (data[n] & 0x7F) << shift
        shift += 7
        if data[n] < 0x80:
            return value, n + 1
    raise ValueError(f"no number begins at byte {at}")
