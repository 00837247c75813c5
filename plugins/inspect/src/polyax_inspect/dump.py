"""``POLYAX_DUMP=dir``: each compiled program in a folder of its own, with all that the compiler made of it.

Only the user can read what is written, since programs may hold what is private.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from polyax.backend import CompileEvent, Report
from polyax.runtime.telling.explanation import Explanation
from polyax_inspect.drawing import Drawing

WIDTH = 120
"""Characters of a line of ``explain.txt``."""


def dump(event: CompileEvent, directory: str) -> Path:
    """Writes one program; returns its folder."""
    folder = new_folder(Path(directory).expanduser(), event.name)
    for name, text in files(event):
        with open(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    return folder


def new_folder(directory: Path, name: str) -> Path:
    """``0003-name``: the next number that is free, also if other processes write to the same directory."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    taken = [int(found.group(1)) for p in directory.iterdir() if (found := re.match(r"(\d+)-", p.name))]
    for number in itertools.count(max(taken, default=-1) + 1):
        folder = directory / f"{number:04d}-{_safe(name)}"
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder
    raise AssertionError("numbers don't end")


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "_", name).strip("_")[:60] or "program"


def files(event: CompileEvent) -> Iterator[tuple[str, str]]:
    """Names and contents."""
    drawing = Drawing(event)
    report = drawing.report
    yield "jaxpr.txt", f"{event.jaxpr}\n"
    yield "explain.txt", Explanation(event.name, event.device, event.jaxpr, report).text(WIDTH) + "\n"
    yield from _stages(report)
    for n, kernel in enumerate(report.steps()):
        if kernel.source:
            yield f"kernel-{n:03d}-{_safe(kernel.name)}.txt", kernel.source
    yield "timings.json", _json({"compile": event.seconds, "phases": report.phases})
    yield "decisions.json", _json([vars(d) for d in report.all_decisions])
    yield "drawing.html", drawing.html


def _stages(report: Report) -> Iterator[tuple[str, str]]:
    """What each pass made of the program, numbered in their order; passes that changed nothing are left out."""
    for n, stage in enumerate(report.stages):
        yield f"pass-{n:02d}-{_safe(stage.name)}.txt", stage.text


def _json(value: object) -> str:
    return json.dumps(value, indent=1) + "\n"
