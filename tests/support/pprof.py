"""Reads profiles of memory, in the format of pprof."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Numbers and values of the fields of a message: integers or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        yield key >> 3, value


def integers(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


def decoded(profile: bytes) -> dict[str, Any]:
    """Samples of a profile as pprof shows them: names of functions, innermost first, values and labels."""
    parts: dict[int, list[Any]] = {n: [] for n in range(1, 16)}
    for field, value in fields(gzip.decompress(profile)):
        parts[field].append(value)
    texts = [t.decode() for t in parts[6]]
    told = [dict(fields(f)) for f in parts[5]]
    assert not any(texts[f.get(3, 0)] for f in told), "pprof changes names that it takes for those of C++"
    functions = {f[1]: (texts[f[2]], texts[f.get(4, 0)]) for f in told}
    probes = {}
    for location in map(dict, map(fields, parts[4])):
        line = dict(fields(location[4]))
        probes[location[1]] = (*functions[line[1]], line.get(2, 0))
    samples = []
    for sample in parts[2]:
        found = list(fields(sample))
        labels = [dict(fields(v)) for n, v in found if n == 3]
        values = next(integers(v) for n, v in found if n == 2)
        stack = next([probes[p] for p in integers(v)] for n, v in found if n == 1)
        samples.append((stack, values, {texts[x[1]]: texts[x[2]] for x in labels}))
    types = [tuple(texts[v] for _, v in fields(t)) for t in parts[1]]
    return {"types": types, "samples": samples, "time": parts[9]}
