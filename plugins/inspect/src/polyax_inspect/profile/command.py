"""``python -m polyax profile`` of a script or module: tables of what took most, and a folder of pictures and files."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from polyax import profiler
from polyax.backend import UsageError, registry
from polyax.extend import source_info_util
from polyax.profiler.memory import encoded
from polyax.runtime.arrays.origins import note_from
from polyax_inspect.profile.flame import memory_flame, time_flame
from polyax_inspect.profile.peak import Peak
from polyax_inspect.profile.script import Script
from polyax_inspect.profile.script import run as run_script
from polyax_inspect.profile.spans import TakenTrace, read
from polyax_inspect.profile.tables import tables
from polyax_inspect.profile.timeline import timeline

WANTED = {"file": "a script, such as train.py", "module": "the name of one, such as package.train"}
NOTED = 1 << 12
"""Bytes of arrays from which on it is noted who made them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="FOLDER", default="profile", help="where to write (default: %(default)s)")
    parser.add_argument("--top", metavar="N", type=int, default=10, help="rows of each table (default: %(default)s)")
    parser.add_argument("-m", dest="is_module", action="store_true", help="a module, by its name: -m package.train")
    parser.add_argument("script", metavar="SCRIPT.py")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="what the script is given")


def run(options: argparse.Namespace) -> int:
    """Runs the script, prints tables, writes files; returns the script's status."""
    started, folder = Script(options.script, options.is_module), Path(options.out)
    if not started.is_there():
        raise UsageError(f"there is no {started.kind} {started.name}; expected {WANTED[started.kind]}")
    if options.top < 1:
        raise UsageError(f"--top: expected a number of rows, got {options.top}")
    source_info_util.register_exclusion(str(Path(__file__).parent))
    note_from(NOTED)
    folder.mkdir(parents=True, exist_ok=True)
    status, peak = _traced(started, options.arguments, folder)
    trace = read(folder / "trace.json.gz")
    print(f"\nProfile of {started.name}", *tables(trace, peak, options.top), sep="\n\n")
    print("", *_written(folder, trace, peak), sep="\n")
    return status


def _traced(started: Script, arguments: list[str], folder: Path) -> tuple[int, Peak]:
    """Runs the script; writes ``trace.json.gz``."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        profiler.start_trace(made)
        peak = Peak()
        ended = run_script(started, arguments)
        _finish()
        peak.stop()
        if profiler.TraceAnnotation.is_enabled():
            profiler.stop_trace()
        else:
            print("polyax profile: the script stopped the trace; this is what happened till then", file=sys.stderr)
        (found,) = Path(made).rglob("*.trace.json.gz")
        found.replace(folder / "trace.json.gz")
    return ended.status, peak


def _finish() -> None:
    """Waits for what devices still work on."""
    for backend in registry.opened():
        for device in backend.devices():
            backend.synchronize(device)


def _written(folder: Path, trace: TakenTrace, peak: Peak) -> Iterator[str]:
    """Writes the rest; tells what is where."""
    (folder / "memory.prof").write_bytes(encoded(peak.arrays))
    pictures = {"timeline.svg": timeline(trace), "time.svg": time_flame(trace), "memory.svg": memory_flame(peak)}
    for name, picture in pictures.items():
        (folder / name).write_text(picture, encoding="utf-8")
    yield f"{folder / 'timeline.svg'}: what each thread and device did when"
    yield f"{folder / 'time.svg'}, {folder / 'memory.svg'}: flame graphs"
    yield f"{folder / 'trace.json.gz'}: for https://ui.perfetto.dev"
    yield f"{folder / 'memory.prof'}: for pprof --web"
