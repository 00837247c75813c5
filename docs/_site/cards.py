"""Grades platforms and writes ``docs/cards.md``: ``make cards``, or ``python cards.py onnx wasm`` for some of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from links import ROOT
from polyax_conformance.card import Card
from polyax_conformance.names import LEVELS

PAGE = ROOT / "docs/cards.md"
FOLDER = PAGE.with_suffix("")
PLATFORMS = ("reference", "cpu", "opencl", "hello_c", "wasm", "onnx")
HEAD = """# Score cards

What each platform of this repository passes of the suite of `polyax-conformance`, level by level: `make cards` grades
them and writes this page and the badges. A number in brackets is that of declared gaps, which must fail and count as
not passed; what isn't for a machine (a second device, another dtype) is skipped and counts for nothing. `cuda` gets its
card when there is hardware to grade it on.

`python -m polyax check PLATFORM` grades any other platform the same way ([plugins](plugins.md#testing-a-backend)).
"""


def gaps_of(platform: str) -> list[str]:
    path = ROOT / "plugins" / platform / "gaps.toml"
    return ["--gaps", str(path)] if path.exists() else []


def make(platform: str) -> None:
    """In a process of its own: a platform is alone, as for who grades their own."""
    files = [word for kind in ("json", "svg") for word in (f"--{kind}", str(FOLDER / f"{platform}.{kind}"))]
    words = [sys.executable, "-m", "polyax", "check", platform, *gaps_of(platform), *files]
    done = subprocess.run(words, cwd=ROOT, env=os.environ | {"POLYAX_PLATFORMS": platform})
    if done.returncode:
        print(f"{platform} fails tests that are no gaps; its card says so", file=sys.stderr)


def page(cards: Sequence[Card]) -> str:
    titles = [f"{n} {name.replace('_', ' ')}" for n, name in enumerate(LEVELS)]
    head = ["", "by", *titles, "level", "of all"]
    rows = [head, ["---", "---", *["---:"] * (len(head) - 2)], *map(_row, cards)]
    return "\n".join([HEAD, *(f"| {' | '.join(row)} |" for row in rows), ""])


def _row(card: Card) -> list[str]:
    scores = [card.levels.get(name) for name in LEVELS]
    counts = [_count(s.passed, s.failed, s.gaps) if s is not None else "–" for s in scores]
    badge = f"![{card.platform}](cards/{card.platform}.svg)"
    return [badge, card.plugin, *counts, str(card.level), f"{card.share:.1%}"]


def _count(passed: int, failed: int, gaps: int) -> str:
    told = str(passed) + (f" ({gaps})" if gaps else "")
    return f"{told}, **{failed} fail**" if failed else told


def kept() -> list[Card]:
    paths = [FOLDER / f"{name}.json" for name in PLATFORMS]
    return [Card.from_json(path.read_text()) for path in paths if path.exists()]


def main(chosen: Sequence[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for platform in chosen or PLATFORMS:
        make(platform)
    PAGE.write_text(page(kept()))
    print(f"written: {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
