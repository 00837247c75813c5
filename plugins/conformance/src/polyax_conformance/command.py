"""``python -m polyax check PLATFORM``: runs the suite, shows the score card, and writes it down."""

from __future__ import annotations

import argparse
from pathlib import Path

from polyax_conformance.card import LEVELS

GAPS = Path("gaps.toml")
DEVICES = 2
"""How many virtual ones host platforms have where nobody says, so that they have several."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("platform")
    names = ", ".join(f"{n} {name}" for n, name in enumerate(LEVELS))
    parser.add_argument("--level", type=int, action="append", default=[], help=f"run this level alone: {names}")
    parser.add_argument("--gaps", type=Path, help="what the platform doesn't do; gaps.toml here, if there is one")
    parser.add_argument("--only", default="", metavar="WORDS", help="choose among tests, as pytest's -k does")
    parser.add_argument("--json", type=Path, help="write the score card to this file")
    parser.add_argument("--svg", type=Path, help="write a badge to this file")


def run(options: argparse.Namespace) -> int:
    """The exit status: 0 if nothing failed that isn't a gap."""
    import polyax
    from polyax.backend import registry
    from polyax_conformance.gaps import read_gaps
    from polyax_conformance.suite import grade

    if polyax.config.num_cpu_devices < 0 and not registry.opened():
        polyax.config.update("num_cpu_devices", DEVICES)
    path = options.gaps or (GAPS if GAPS.exists() else None)
    card = grade(options.platform, options.level, read_gaps(path) if path else [], options.only)
    print(card.text())
    for file, text in ((options.json, card.to_json), (options.svg, card.svg)):
        if file is not None:
            file.write_text(text())
    return int(bool(card.failures))
