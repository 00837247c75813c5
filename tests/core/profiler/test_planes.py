"""Traces in the format of XProf: planes that JAX's reader reads, and those that it writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import profiler
from polyax.profiler import planes

TRACE = {
    "metadata": {"began": 1.0},
    "traceEvents": [
        {"ph": "M", "name": "thread_name", "tid": 7, "args": {"name": "main", "kind": "thread"}},
        {"ph": "M", "name": "thread_name", "tid": 1, "args": {"name": "cpu:0", "kind": "device"}},
        {"ph": "X", "tid": 7, "cat": "annotation", "name": "work", "ts": 5, "dur": 2.5, "args": {"n": -3, "f": 1.5}},
        {"ph": "C", "tid": 0, "name": "cpu:0", "ts": 5, "args": {"bytes": 4}},
        {"ph": "X", "tid": 1, "cat": "run", "name": "work", "ts": 6, "dur": 1, "args": {"lines": "a.py:1"}},
    ],
}

OF_JAX = bytes.fromhex(
    "0a7c080212092f686f73743a4350551a3e080712046d61696e18e8072231080110882718c413220d080120fdffffffffffffffff01220b0802"
    "11000000000000f83f220508032a0161220408033802220c0801120808011204776f726b2a090803120508031201732a090801120508011201"
    "6e2a09080212050802120166"
)
"""The plane /host:CPU with a line main, at 1000 ns, and there work from 5 ns for 2.5 ns: n is -3, f 1.5, s a and f.
Written by jax.profiler.ProfileData.text_proto_to_serialized_xspace of JAX 0.10.2."""


def test_threads_are_lines_of_the_host_and_devices_planes() -> None:
    found = profiler.ProfileData.from_serialized_xspace(planes.encoded(TRACE))
    host, device = found.planes
    assert found.find_plane_with_name("/host:CPU") is host and found.find_plane_with_name("/host") is None
    assert (host.name, device.name) == ("/host:CPU", "/device:CPU:0")
    (line,), (on_device,) = host.lines, device.lines
    (event,), (run,) = line.events, on_device.events
    assert (line.name, event.name, event.start_ns, event.duration_ns) == ("main", "work", 1e9 + 5000, 2500)
    assert event.stats == [("kind", "annotation"), ("n", -3), ("f", 1.5)]
    assert run.start_ns == 1e9 + 6000 and run.stats == [("kind", "run"), ("lines", "a.py:1")]


def test_facts_are_told_apart_by_their_types() -> None:
    """What is written once is written for what looks the same."""
    values = [1, 1.0, "1", True, "1.0", 0.0, -0.0, "True", 200, -1, [1], "[1]"]
    event = {"ph": "X", "tid": 7, "cat": "annotation", "name": "work", "ts": 5, "dur": 1}
    events = [event | {"args": {"x": v}} for v in values * 2]
    (host,) = profiler.ProfileData.from_serialized_xspace(
        planes.encoded(TRACE | {"traceEvents": [TRACE["traceEvents"][0], *events]})
    ).planes
    (line,) = host.lines
    told = [dict(e.stats)["x"] for e in line.events]
    expected = [1, 1.0, "1", 1, "1.0", 0.0, -0.0, "True", 200, -1, "[1]", "[1]"] * 2
    assert list(map(repr, told)) == list(map(repr, expected))


def test_what_jax_writes_is_read() -> None:
    (plane,) = profiler.ProfileData.from_serialized(OF_JAX).planes
    (line,) = plane.lines
    (event,) = line.events
    assert (plane.name, line.name, event.name, event.start_ns, event.duration_ns) == (
        "/host:CPU", "main", "work", 1005, 2.5,
    )  # fmt: skip
    assert event.stats == [("n", -3), ("f", 1.5), ("s", "a"), ("s", "f")]


@pytest.mark.parametrize("end", [1, 60, len(OF_JAX) - 1])
def test_what_is_cut_off_is_refused(end: int) -> None:
    with pytest.raises(ValueError, match="these bytes are no trace"):
        profiler.ProfileData.from_serialized_xspace(OF_JAX[:end])


def test_a_trace_is_written_in_both_formats(tmp_path: Path) -> None:
    with profiler.trace(tmp_path):
        polyax.jit(lambda x: jnp.sin(x) @ x)(np.ones((8, 8), np.float32)).block_until_ready()
    (file,) = tmp_path.rglob("*.xplane.pb")
    (other,) = tmp_path.rglob("*.trace.json.gz")
    (all_in_one,) = profiler.ProfileData.from_file(str(other)).planes
    host, *devices = profiler.ProfileData.from_file(str(file)).planes
    found = [[e.name for e in line.events] for plane in (host, *devices) for line in plane.lines]
    assert devices and found == [[e.name for e in line.events] for line in all_in_one.lines]
