"""Profiles: what is in them is read back by decoders of the tests."""

from __future__ import annotations

import gzip
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import profiler
from polyax.api.jit import PjitFunction
from polyax.runtime.running import compiling
from polyax.runtime.running.dispatch import EvalTrace
from polyax.trace import calls

# --- memory -----------------------------------------------------------------------------------------------------------


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
    functions = {f[1]: (texts[f[2]], texts[f.get(4, 0)]) for f in map(dict, map(fields, parts[5]))}
    places = {}
    for location in map(dict, map(fields, parts[4])):
        line = dict(fields(location[4]))
        places[location[1]] = (*functions[line[1]], line.get(2, 0))
    samples = []
    for sample in parts[2]:
        found = list(fields(sample))
        labels = [dict(fields(v)) for n, v in found if n == 3]
        values = next(integers(v) for n, v in found if n == 2)
        stack = next([places[p] for p in integers(v)] for n, v in found if n == 1)
        samples.append((stack, values, {texts[x[1]]: texts[x[2]] for x in labels}))
    types = [tuple(texts[v] for _, v in fields(t)) for t in parts[1]]
    return {"types": types, "samples": samples, "time": parts[9]}


def make_large() -> Any:
    return jnp.tile(jnp.ones((512, 512)), 10) * 0.5


def test_memory_is_known_by_the_calls_that_made_it(tmp_path: Path) -> None:
    x = make_large()
    before = time.time_ns()
    profiler.save_device_memory_profile(str(tmp_path / "memory.prof"))
    found = decoded((tmp_path / "memory.prof").read_bytes())
    assert found["types"] == [("allocations", "count"), ("space", "bytes")] and found["time"][0] >= before
    mine = [(stack, values, labels) for stack, values, labels in found["samples"] if stack[0][0] == "make_large"]
    ((stack, values, labels),) = mine
    assert stack[0][1:] == (__file__, make_large.__code__.co_firstlineno + 1)
    assert stack[1][0] == "test_memory_is_known_by_the_calls_that_made_it"
    assert values == [1, x.nbytes] and labels == {"kind": "buffer", "device": str(x.device)}
    del x
    again = decoded(profiler.device_memory_profile())
    assert not [stack for stack, *_ in again["samples"] if stack[0][0] == "make_large"]


def test_all_live_bytes_are_counted() -> None:
    kept = [jnp.ones(1000), polyax.device_put(np.ones((600, 600), np.float32)), make_large()]
    polyax.block_until_ready(kept)
    living = polyax.live_arrays()
    found = decoded(profiler.device_memory_profile())
    assert sum(values[1] for _, values, _ in found["samples"]) == sum(x.nbytes for x in living)
    assert sum(values[0] for _, values, _ in found["samples"]) == len(living)


def test_small_arrays_are_not_asked_where_they_were_made() -> None:
    from polyax.runtime.arrays.origins import origin_of

    here = "test_small_arrays_are_not_asked_where_they_were_made"
    small, large = jnp.ones(10) + 1, jnp.ones((1024, 1024)) + 1
    assert origin_of(small) == () and origin_of(large)[0][0].co_name == here


# --- traces -----------------------------------------------------------------------------------------------------------

METHODS = ((calls, "trace_to_jaxpr"), (compiling, "build"), (PjitFunction, "__call__"), (EvalTrace, "process"))


def events_of(folder: Path) -> list[tuple[str, str, Any]]:
    (file,) = folder.rglob("*.trace.json.gz")
    (plane,) = profiler.ProfileData.from_file(str(file)).planes
    assert plane.name == "polyax"
    found = [(e, dict(e.stats)) for line in plane.lines for e in line.events]
    assert all(e.duration_ns >= 0 and e.end_ns >= e.start_ns for e, _ in found)
    return [(stats["kind"], e.name, stats) for e, stats in found]


def test_a_trace_tells_of_tracing_compiling_and_calls(tmp_path: Path) -> None:
    before = [vars(owner)[name] for owner, name in METHODS]

    @polyax.jit
    def wave(x: Any) -> Any:
        return jnp.sin(x) * 2

    with profiler.trace(tmp_path, create_perfetto_trace=True):
        assert profiler.TraceAnnotation.is_enabled()
        for step in range(2):
            with profiler.StepTraceAnnotation("train", step_num=step):
                wave(np.ones(3, np.float32))
        profiler.annotate_function(wave, name="annotated")(np.ones(3, np.float32))
        with profiler.TraceAnnotation("elsewhere", size=1) as span:
            thread = threading.Thread(target=wave, args=(np.ones(4, np.float32),), name="another")
            thread.start()
            thread.join()
            span.set_metadata(found="yes")
    assert [vars(owner)[name] for owner, name in METHODS] == before, "nothing stays in the way"
    assert not profiler.TraceAnnotation.is_enabled()
    found = events_of(tmp_path)
    kinds = [(kind, name) for kind, name, _ in found]
    assert kinds.count(("trace", "wave")) == 2 and kinds.count(("compile", "wave")) == 2
    assert kinds.count(("call", "wave")) == 4 and ("annotation", "annotated") in kinds
    steps = [stats["step_num"] for _, name, stats in found if name == "train"]
    assert steps == ["0", "1"]
    (elsewhere,) = [stats for _, name, stats in found if name == "elsewhere"]
    assert elsewhere["size"] == "1" and elsewhere["found"] == "yes"
    assert len(list(tmp_path.rglob("perfetto_trace.json.gz"))) == 1


def test_traces_begin_and_end_once(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()
    profiler.start_trace(tmp_path)
    with pytest.raises(RuntimeError, match="Only one profile may be run at a time"):
        profiler.start_trace(tmp_path)
    profiler.stop_trace()
    with pytest.raises(NotImplementedError, match="create_perfetto_link isn't built"):
        profiler.start_trace(tmp_path, create_perfetto_link=True)
    with pytest.raises(ValueError, match="no trace of polyax"):
        profiler.ProfileData.from_file(__file__)
    assert profiler.ProfileOptions().host_tracer_level == 2


def test_an_error_ends_a_trace(tmp_path: Path) -> None:
    with pytest.raises(KeyError), profiler.trace(tmp_path):
        raise KeyError("mine")
    assert not profiler.TraceAnnotation.is_enabled() and list(tmp_path.rglob("*.trace.json.gz"))


def test_a_server_gives_profiles() -> None:
    server = profiler.start_server(0)
    address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        with pytest.raises(ValueError, match="Only one profiler server"):
            profiler.start_server(0)
        with urllib.request.urlopen(f"{address}/memory") as answer:
            assert decoded(answer.read())["types"][1] == ("space", "bytes")
        with urllib.request.urlopen(f"{address}/trace?seconds=0.01") as answer:
            (plane,) = profiler.ProfileData.from_serialized(answer.read()).planes
            assert plane.name == "polyax"
        for path, code in (("other", 404), ("trace?seconds=long", 409)):
            with pytest.raises(urllib.error.HTTPError) as raised:
                urllib.request.urlopen(f"{address}/{path}")
            assert raised.value.code == code
    finally:
        profiler.stop_server()
    with pytest.raises(ValueError, match="No active profiler server"):
        profiler.stop_server()
    with pytest.raises(NotImplementedError, match="process 1 itself, at port 2"):
        profiler.register_subprocess(1, 2)
