"""Grades platforms and writes ``docs/cards.md``: ``make cards``, or ``python cards.py onnx wasm`` for some of them.

``--check`` grades them as well, and says whether the cards that are there tell the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from links import ROOT
from polyax_conformance.card import Card
from polyax_conformance.names import LEVELS

PAGE = ROOT / "docs/cards.md"
FOLDER = PAGE.with_suffix("")
PLATFORMS = ("reference", "cpu", "opencl", "hello_c", "wasm", "onnx")
WITH_HARDWARE = ("cuda",)
"""Graded where there is some: their cards are shown, and not checked by each build."""
HEAD = """# Score cards

What each platform of this repository passes of the suite of `polyax-conformance`, level by level: `make cards` grades
them and writes this page and the badges. A number in brackets is that of declared gaps, which must fail and count as
not passed; what isn't for a machine (a second device, another dtype) is skipped and counts for nothing. `cuda` was
graded on one NVIDIA H200 (driver 580.159, CUDA 13, CuPy 14.2), 2026-11-28: level 5 wants two GPUs.

`python -m polyax check PLATFORM` grades any other platform the same way ([plugins](plugins.md#testing-a-backend)).
"""


def gaps_of(platform: str) -> list[str]:
    path = ROOT / "plugins" / platform / "gaps.toml"
    return ["--gaps", str(path)] if path.exists() else []


def make(platform: str, folder: Path = FOLDER) -> None:
    """In a process of its own: a platform is alone, as for who grades their own."""
    files = [word for kind in ("json", "svg") for word in (f"--{kind}", str(folder / f"{platform}.{kind}"))]
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
    paths = [FOLDER / f"{name}.json" for name in (*PLATFORMS, *WITH_HARDWARE)]
    return [Card.from_json(path.read_text()) for path in paths if path.exists()]


def differences(kept: Card, found: Card) -> list[str]:
    """Where a new card counts otherwise than one that is kept; speed isn't counted, nor what a machine hasn't."""
    counted = lambda card, name: (s := card.levels.get(name)) and (s.passed + s.skipped, s.failed, s.gaps)
    told = "level {}: (passed, failed, gaps) are {}, and the card says {}"
    pairs = [(name, counted(found, name), counted(kept, name)) for name in LEVELS]
    return [told.format(name, new, old) for name, new, old in pairs if new != old] + list(found.failures)


def check(chosen: Sequence[str]) -> int:
    """The exit status: 0, if the cards of these platforms are what grading them anew gives."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for platform in chosen:
            make(platform, Path(folder))
            old, new = (Card.from_json((place / f"{platform}.json").read_text()) for place in (FOLDER, Path(folder)))
            if found := differences(old, new):
                wrong += 1
                print(
                    f"the card of {platform} is old; `make cards CARDS={platform}` makes it anew:", *found, sep="\n  "
                )
    return int(bool(wrong))


def main(chosen: Sequence[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for platform in chosen or PLATFORMS:
        make(platform)
    PAGE.write_text(page(kept()))
    print(f"written: {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        raise SystemExit(check(sys.argv[2:] or PLATFORMS))
    main(sys.argv[1:])
