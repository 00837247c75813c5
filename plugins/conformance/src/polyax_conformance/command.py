"""``python -m polyax check PLATFORM``: runs the suite, shows the score card, and writes it down."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from polyax_conformance.card import LEVELS, Card
from polyax_conformance.parallel import grade_side_by_side
from polyax_conformance.progress import ProgressLine, line_of_terminal

if TYPE_CHECKING:
    from polyax_conformance.gaps import Gap

GAPS = Path("gaps.toml")
DEVICES = 2
"""How many virtual ones host platforms have where nobody says, so that they have several."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("platform")
    names = ", ".join(f"{n} {name}" for n, name in enumerate(LEVELS))
    parser.add_argument("--level", type=int, action="append", default=[], help=f"run this level alone: {names}")
    parser.add_argument("--gaps", type=Path, help="what the platform doesn't do; gaps.toml here, if there is one")
    parser.add_argument("--only", default="", metavar="WORDS", help="choose among tests, as pytest's -k does")
    parser.add_argument("-n", dest="jobs", type=positive, default=1, help="how many levels run side by side; 1")
    parser.add_argument("--json", type=Path, help="write the score card to this file")
    parser.add_argument("--svg", type=Path, help="write a badge to this file")


def positive(text: str) -> int:
    """A number of processes."""
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """The exit status: 0 if nothing failed that isn't a gap."""
    import polyax
    from polyax.backend import registry
    from polyax_conformance.gaps import read_gaps

    if polyax.config.num_cpu_devices < 0 and not registry.opened():
        polyax.config.update("num_cpu_devices", DEVICES)
    path = options.gaps or (GAPS if GAPS.exists() else None)
    gaps = read_gaps(path) if path else []
    refuse_places([file for file in (options.json, options.svg) if file is not None])
    with line_of_terminal() or nullcontext() as line:
        card = _graded(options, gaps, path, line)
    print(card.text())
    for file, text in ((options.json, card.to_json), (options.svg, card.svg)):
        if file is not None:
            file.write_text(text())
    return int(bool(card.failures))


def refuse_places(files: Iterable[Path]) -> None:
    """Raises ``UsageError`` for a file that can't be written, before hours of grading are lost with it."""
    from polyax.backend import UsageError

    for file in files:
        if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
            raise UsageError(f"{file} can't be written: name a file in a folder that is there")


def _graded(options: argparse.Namespace, gaps: Sequence[Gap], path: Path | None, line: ProgressLine | None) -> Card:
    from polyax_conformance.suite import folders_of, grade, owner_of, refuse_unmet

    folders_of(options.level)  # before anything is started
    owner_of(options.platform)
    if options.jobs == 1:
        return grade(options.platform, options.level, gaps, options.only, line)
    levels = options.level or range(len(LEVELS))
    rest = [*(["--gaps", str(path)] if path else []), *(["--only", options.only] if options.only else [])]
    if not options.level and not options.only:
        refuse_unmet(options.platform, gaps)
    return grade_side_by_side(options.platform, levels, options.jobs, rest, line)
