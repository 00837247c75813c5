"""Profiles: what is in them is read back by decoders of the tests."""

from __future__ import annotations

import gc
import gzip
import json
import shutil
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import profiler
from polyax.profiler import events
from polyax.profiler.events import PROBES
from polyax.runtime.contract.probes import probes
from support import process
from support.pprof import decoded

# --- memory -----------------------------------------------------------------------------------------------------------


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


def test_arrays_in_the_making_are_no_arrays_yet() -> None:
    """Other threads make arrays while one looks for all."""
    array = type(jnp.ones(3))
    empty, without_parts = array.__new__(array), array(jnp.ones(3).aval, None, None)
    assert not [x for x in polyax.live_arrays() if x is empty or x is without_parts]
    assert decoded(profiler.device_memory_profile())["types"]


def test_small_arrays_are_not_asked_where_they_were_made() -> None:
    from polyax.runtime.arrays.origins import origin_of

    here = "test_small_arrays_are_not_asked_where_they_were_made"
    small, large = jnp.ones(10) + 1, jnp.ones((1024, 1024)) + 1
    assert origin_of(small) == () and origin_of(large)[0][0].co_name == here


# --- traces -----------------------------------------------------------------------------------------------------------


def in_place() -> list[Any]:
    """What traces replace, as it is now."""
    return [vars(owner)[name] for owner, name, _ in (*PROBES, *probes)]


def events_of(folder: Path) -> list[tuple[str, str, Any]]:
    (file,) = folder.rglob("*.trace.json.gz")
    (plane,) = profiler.ProfileData.from_file(str(file)).planes
    assert plane.name == "polyax"
    found = [(e, dict(e.stats)) for line in plane.lines for e in line.events]
    assert all(e.duration_ns >= 0 and e.end_ns >= e.start_ns for e, _ in found)
    return [(stats["kind"], e.name, stats) for e, stats in found]


def test_a_trace_tells_of_tracing_compiling_and_calls(tmp_path: Path) -> None:
    float(jnp.sin(1.0))  # what a backend is made of is imported
    before = in_place()

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
    assert in_place() == before, "nothing stays in the way"
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
    with pytest.raises(ValueError, match="these bytes are no trace, neither gzipped JSON nor a message"):
        profiler.ProfileData.from_file(__file__)
    with pytest.raises(ValueError, match="no trace of polyax, gzipped JSON"):
        profiler.ProfileData.from_serialized(gzip.compress(b"[]"))
    assert profiler.ProfileOptions().host_tracer_level == 2


def lines_of(folder: Path) -> dict[str, list[tuple[str, str, Any]]]:
    """The events of each thread and device: kind, name and what else is told."""
    (file,) = folder.rglob("*.trace.json.gz")
    (plane,) = profiler.ProfileData.from_file(str(file)).planes
    told = {line.name: [(e, dict(e.stats)) for e in line.events] for line in plane.lines}
    return {name: [(stats["kind"], e.name, stats) for e, stats in events] for name, events in told.items()}


def softly(x: Any) -> Any:
    return polyax.nn.softmax(x @ x)


def test_devices_tell_kernels_with_the_primitives_that_were_fused(tmp_path: Path, platform: str) -> None:
    device = polyax.devices(platform)[0]
    x = polyax.device_put(np.ones((8, 8), np.float32), device)
    soft = polyax.jit(softly)
    expected = np.asarray(soft(x))
    soft(x)
    with profiler.trace(tmp_path):
        assert (np.asarray(soft(x)) == expected).all()
    steps = lines_of(tmp_path)[str(device)]
    assert ("run", "softly") in [(kind, name) for kind, name, _ in steps]
    told = [(name, stats) for kind, name, stats in steps if kind in ("kernel", "call")]
    if platform == "onnx":
        assert not told, "an engine runs the program as a whole"
        return
    assert "dot_general" in " ".join(name for name, _ in told) and "exp" in " ".join(name for name, _ in told)
    line = softly.__code__.co_firstlineno + 1
    assert all(f"{__file__}:{line} (softly)" in stats["lines"] for _, stats in told)


def test_steps_of_native_programs_are_told_apart(tmp_path: Path) -> None:
    """And run together again after the trace."""
    program = polyax.jit(lambda x: jnp.tanh(x @ x).sum() * 2, device=polyax.devices("cpu")[0])
    x = np.ones((16, 16), np.float32)
    expected = float(program(x))
    with profiler.trace(tmp_path):
        assert float(program(x)) == expected
    kinds = [kind for kind, _, _ in lines_of(tmp_path)["cpu:0"]]
    assert kinds == ["run", "call", "kernel"]
    assert float(program(x)) == expected


FIRST_CALL = """
    import polyax, polyax.numpy as jnp
    from polyax import profiler

    with profiler.trace({folder!r}):
        polyax.jit(lambda x: jnp.tanh(x) * 2)(jnp.ones(3)).block_until_ready()
"""


def test_backends_that_a_trace_is_the_first_to_need_tell_it(tmp_path: Path) -> None:
    process.output(FIRST_CALL.format(folder=str(tmp_path)), POLYAX_PLATFORMS="cpu")
    assert ("kernel", "tanh mul") in [(kind, name) for kind, name, _ in lines_of(tmp_path)["cpu:0"]]


def test_loops_branches_and_operations_are_told(tmp_path: Path) -> None:
    with polyax.default_device(polyax.devices("cpu")[0]), profiler.trace(tmp_path):
        polyax.lax.scan(lambda c, x: (c * x, c), jnp.ones(5), jnp.ones((7, 5)))
        for _ in range(8):  # those that come again run natively as a whole
            jnp.sum(jnp.ones(3) + 1)
    lines = lines_of(tmp_path)
    assert "loop" in [kind for kind, _, _ in lines["cpu:0"]]
    told = [name for kind, name, _ in lines["MainThread"] if kind == "operation"]
    assert told.count("reduce_sum") + told.count("sum") == 8 and "scan" in told
    assert [name for kind, name, _ in lines["cpu:0"] if kind == "kernel"].count("reduce_sum") == 8


def test_operations_and_calls_know_the_line_that_made_them(tmp_path: Path) -> None:
    doubled = polyax.jit(lambda x: x * 2)
    with polyax.default_device(polyax.devices("cpu")[0]), profiler.trace(tmp_path):
        doubled(jnp.ones(3) + 1)
    code = test_operations_and_calls_know_the_line_that_made_them.__code__
    line = f"{__file__}:{code.co_firstlineno + 3} ({code.co_name})"
    lines = lines_of(tmp_path)
    for name, kinds in (("MainThread", {"operation", "call"}), ("cpu:0", {"run"})):
        told = [(kind, stats.get("lines")) for kind, _, stats in lines[name] if kind in kinds]
        assert {kind for kind, _ in told} == kinds and {text for _, text in told} == {line}


@pytest.mark.parametrize("name", ["cpu", "reference"])
def test_memory_is_known_over_time(tmp_path: Path, name: str) -> None:
    """The reference has no statistics: there live arrays are counted."""
    device = polyax.devices(name)[0]
    with profiler.trace(tmp_path):
        kept = polyax.device_put(np.ones((512, 513), np.float32), device)
        time.sleep(0.1)
    (file,) = tmp_path.rglob("*.trace.json.gz")
    told = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    values = [e["args"]["bytes"] for e in told if e["ph"] == "C" and e["name"] == f"bytes in use on {name}"]
    assert len(values) >= 2 and values[-1] >= kept.nbytes


def test_a_profile_of_a_device_without_statistics_counts_its_arrays() -> None:
    device = polyax.devices("reference")[0]
    assert device.memory_stats() is None
    kept = polyax.device_put(np.ones(1000, np.float32), device)
    found = decoded(profiler.device_memory_profile("reference"))
    assert sum(values[1] for _, values, _ in found["samples"]) >= kept.nbytes
    with pytest.raises(RuntimeError, match="Unknown backend elsewhere"):
        profiler.device_memory_profile("elsewhere")


def test_folders_that_cannot_be_written_to_are_told_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        profiler.start_trace(tmp_path / "file")
    assert not profiler.TraceAnnotation.is_enabled()
    with pytest.raises(OSError, match="missing"):
        profiler.save_device_memory_profile(str(tmp_path / "missing" / "memory.prof"))
    assert float(polyax.jit(jnp.sum)(np.ones(3))) == 3, "the run goes on"
    profiler.start_trace(tmp_path / "other")
    profiler.stop_trace()


def test_traces_of_one_second_are_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "strftime", lambda _: "noon")
    for n in range(3):
        with profiler.trace(tmp_path), profiler.TraceAnnotation(f"trace {n}"):
            pass
    files = sorted(tmp_path.rglob("*.trace.json.gz"))
    assert [file.parent.name for file in files] == ["noon", "noon_1", "noon_2"]
    for n, file in enumerate(files):
        assert f"trace {n}".encode() in gzip.decompress(file.read_bytes())


def test_a_folder_that_vanishes_meanwhile_is_made_again(tmp_path: Path) -> None:
    with profiler.trace(tmp_path / "here"):
        shutil.rmtree(tmp_path / "here")
    assert len(list(tmp_path.rglob("*.trace.json.gz"))) == 1


def test_annotations_outside_of_traces_say_nothing(tmp_path: Path) -> None:
    with profiler.TraceAnnotation("early"):
        profiler.start_trace(tmp_path)
    with profiler.TraceAnnotation("late"):
        profiler.stop_trace()
    assert profiler.annotate_function(lambda: 3, name="never")() == 3
    assert not [name for events in lines_of(tmp_path).values() for _, name, _ in events]


def test_long_garbage_collections_are_told(tmp_path: Path) -> None:
    before = list(gc.callbacks)
    with profiler.trace(tmp_path):
        gc.collect()
    assert gc.callbacks == before
    told = [name for kind, name, _ in lines_of(tmp_path)["MainThread"] if kind == "collection"]
    assert "generation 2" in told


@pytest.mark.parametrize("moment", ["_set_ident", "_set_native_id"])
def test_threads_that_collect_garbage_as_they_start_keep_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Python knows a thread by its number only when it has got one."""
    monkeypatch.setattr(events, "LONG", 0)
    step = getattr(threading.Thread, moment)
    monkeypatch.setattr(threading.Thread, moment, lambda thread: (gc.collect(), step(thread)))
    with profiler.trace(tmp_path):
        thread = threading.Thread(target=lambda: jnp.sin(1.0), name="worker")
        thread.start()
        thread.join()
    kinds = {kind for kind, _, _ in lines_of(tmp_path)["worker"]}
    assert {"collection", "operation"} <= kinds


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
