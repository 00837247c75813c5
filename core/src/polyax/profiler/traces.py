"""``start_trace stop_trace trace`` and annotations, with files that Perfetto, ``chrome://tracing`` and XProf show."""

from __future__ import annotations

import functools
import gzip
import itertools
import json
import os
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from polyax.profiler import events, planes
from polyax.profiler.events import Current, Recording
from polyax.profiler.sampling import Sampler

_where: list[tuple[Path, bool, Sampler]] = []


class ProfileOptions:
    """What a trace records. Kept for compatibility: here it is always the same."""

    def __init__(self) -> None:
        self.host_tracer_level = 2
        self.device_tracer_level = 1
        self.python_tracer_level = 0
        self.include_dataset_ops = False
        self.enable_hlo_proto = False
        self.duration_ms = 0
        self.start_timestamp_ns = 0
        self.session_id = ""
        self.repository_path = ""
        self.raise_error_on_start_failure = False
        self.advanced_configuration: dict[str, Any] = {}


def start_trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Begins to record what threads do (functions traced, compiled and called, operations outside of them, transfers,
    annotations), what devices do (programs, and in them kernels with the primitives that were fused, library calls,
    loops), and how many bytes live on each device.

    Meanwhile kernels of a program run one after the other. Each is waited for, unless the device has a clock that tells
    afterwards when it came to them.

    Args:
      log_dir: where ``stop_trace`` writes ``plugins/profile/TIME/HOST.trace.json.gz``, for https://ui.perfetto.dev, and
        ``HOST.xplane.pb``, for XProf and TensorBoard.
      create_perfetto_trace: also writes it as ``perfetto_trace.json.gz`` beside.
      profiler_options: kept for compatibility.

    Raises:
      RuntimeError: a trace is being taken.
      OSError: the folder can't be written to.
      NotImplementedError: ``create_perfetto_link`` is set.
    """
    if create_perfetto_link:
        raise NotImplementedError(
            "start_trace: create_perfetto_link isn't built; set create_perfetto_trace and open the file at "
            "https://ui.perfetto.dev"
        )
    runs = Path(log_dir, "plugins", "profile")
    recording = events.begin()
    try:
        folder = _new_folder(runs)  # what can't be written to is found before the work is done
    except OSError:
        events.end()
        raise
    _where.append((folder, create_perfetto_trace, Sampler(recording)))


def _new_folder(runs: Path) -> Path:
    """Named by the time, and by a number if another trace, perhaps of another process, began in the same second."""
    second = time.strftime("%Y_%m_%d_%H_%M_%S")
    names = itertools.chain([second], (f"{second}_{n}" for n in itertools.count(1)))
    return next(folder for name in names if _made(folder := runs / name))


def _made(folder: Path) -> bool:
    """Makes it, unless there is one."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    return True


def stop_trace() -> None:
    """Ends the trace and writes it, in a new folder if somebody removed it.

    Raises:
      RuntimeError: none is being taken.
    """
    recording = events.end()
    folder, perfetto, sampler = _where.pop()
    sampler.stop()
    found, host = _chrome(recording), socket.gethostname()
    data = gzip.compress(json.dumps(found).encode())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{host}.trace.json.gz").write_bytes(data)
    (folder / f"{host}.xplane.pb").write_bytes(planes.encoded(found))
    if perfetto:
        (folder / "perfetto_trace.json.gz").write_bytes(data)


def _chrome(recording: Recording) -> dict[str, Any]:
    events = recording.told()  # all lines are known then
    names = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "polyax"}}]
    devices = {n: device for device, n in recording.devices.items()}
    for line, name in (recording.threads | devices).items():
        told = {"name": name or f"thread {line}", "kind": "device" if line in devices else "thread"}
        names.append({"ph": "M", "pid": 1, "tid": line, "name": "thread_name", "args": told})
    return {"displayTimeUnit": "ns", "metadata": {"began": recording.began}, "traceEvents": names + events}


@contextmanager
def trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Generator[None]:
    """``start_trace`` and ``stop_trace`` around a block; see there for arguments and errors."""
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation:
    """A block, or a function that it decorates, as an event of traces.

    >>> with TraceAnnotation("loading", file="a.npy"):
    ...     pass
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        self.name = name
        self.metadata = kwargs
        self._start: list[int] = []

    @staticmethod
    def is_enabled() -> bool:
        """Whether a trace is being taken."""
        return Current.recording is not None

    def set_metadata(self, **kwargs: Any) -> None:
        """Adds to what the event tells."""
        self.metadata = {**self.metadata, **kwargs}

    def __enter__(self) -> TraceAnnotation:
        self._start.append(time.perf_counter_ns())
        return self

    def __exit__(self, *_: object) -> None:
        start, recording = self._start.pop(), Current.recording
        if recording is not None and start >= recording.start:
            recording.add("annotation", self.name, start, {k: str(v) for k, v in self.metadata.items()})

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        return annotate_function(fun, self.name, **self.metadata)


class StepTraceAnnotation(TraceAnnotation):
    """``TraceAnnotation`` for a step of a training loop: ``StepTraceAnnotation("train", step_num=3)``."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: Callable[..., Any], name: str | None = None, **decorator_kwargs: Any) -> Callable[..., Any]:
    """``func``, each call of which is an event of traces.

    >>> annotate_function(lambda x: x + 1, name="next")(1)
    2
    """

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(name or getattr(func, "__qualname__", repr(func)), **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated
