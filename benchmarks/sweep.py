"""Times every operation, small, in the cache and in memory, and its gradient, in turns with peers.

    python benchmarks/sweep.py [--peer MODULE[=PYTHON] ...] [-k WORD] [--sizes small,cache] [--seconds S]
                               [--json FILE] [--plot FILE]

A peer is ``jax``, another module with its interface, ``numpy``, ``torch``, or ``inductor`` for what ``torch.compile``
makes; PYTHON has it, and ml_dtypes. A ratio is our steady time by the first peer's: the median of turns. "d" before a
name is its gradient; an exclamation mark behind a ratio says that the results differ. ``--json`` keeps every figure,
and a sweep that was cut off goes on from there.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from operations import algorithms, elementwise, products, programs, reductions, shapes
from operations.operation import SIZES, Operation
from sides import Side

FAMILIES = (elementwise, reductions, shapes, products, algorithms, programs)
TURNS = 5
AGREE = 0.02
"""How far apart the mean sizes of results may be; narrow types and approximations differ so much."""
WORST = 20
BOUNDS = (1.1, 1.2, 1.5, 2.0)
Row = dict[str, Any]


@cache
def every() -> dict[str, Operation]:
    """The operations by name."""
    found = [operation for family in FAMILIES for operation in family.operations()]
    names = {operation.name: operation for operation in found}
    assert len(names) == len(found), "two operations have the same name"
    return names


def find(name: str) -> Operation:
    return every()[name]


def cases(word: str, sizes: list[str]) -> Iterator[tuple[Operation, str, bool]]:
    for operation in every().values():
        for size in operation.sizes:
            for gradient in (False, True)[: 1 + operation.gradient]:
                if word in label(operation.name, gradient) and size in sizes:
                    yield operation, size, gradient


def label(name: str, gradient: bool) -> str:
    return f"d {name}" if gradient else name


def measured(sides: list[Side], operation: Operation, size: str, gradient: bool, seconds: float) -> Row:
    """Seconds of first calls and of steady ones by side, and why there are none."""
    told = {s.module: s.prepare(operation.name, SIZES[size], gradient) for s in sides}
    able = [s for s in sides if "error" not in told[s.module]]
    turns: dict[str, list[float]] = {s.module: [] for s in able}
    for _ in range(TURNS):
        for side in able:
            answer = side.steady(seconds)
            turns[side.module].append(answer.get("steady", math.nan))
    return {
        "name": label(operation.name, gradient),
        "size": size,
        "first": {s.module: told[s.module]["first"] for s in able},
        "steady": {m: statistics.median(t) for m, t in turns.items()},
        "result": {s.module: told[s.module]["size"] for s in able},
        "errors": {m: t["error"] for m, t in told.items() if "error" in t},
    }


def ratio(row: Row, sides: list[Side]) -> float | None:
    """Ours by the first peer's."""
    ours, theirs = (row["steady"].get(s.module) for s in sides[:2]) if len(sides) > 1 else (None, None)
    return ours / theirs if ours and theirs else None


def agree(row: Row, sides: list[Side]) -> bool:
    a, b = (row["result"].get(s.module) for s in sides[:2])
    return a is None or b is None or math.isclose(a, b, rel_tol=AGREE, abs_tol=AGREE)


def line(row: Row, sides: list[Side]) -> str:
    cells = [f"{1e6 * row['steady'][s.module]:12.1f}" if s.module in row["steady"] else f"{'-':>12}" for s in sides]
    found = ratio(row, sides)
    mark = "" if found is None else f"{found:8.2f}{'' if agree(row, sides) else ' !'}"
    why = "; ".join(f"{m}: {e}" for m, e in row["errors"].items() if m == sides[0].module)
    return f"{row['name']:32}{row['size']:8}{''.join(cells)}{mark}  {why}".rstrip()


def summary(rows: list[Row], sides: list[Side]) -> str:
    """The geometric mean, how many are behind, and the worst."""
    known = sorted(((found, row) for row in rows if (found := ratio(row, sides))), key=lambda pair: -pair[0])
    if not known:
        errors = {e for row in rows for e in row["errors"].values()}
        return "\n".join(["nothing to compare", *sorted(errors)[:WORST]])
    mean = math.exp(statistics.fmean(math.log(found) for found, _ in known))
    behind = ", ".join(f"{sum(found > bound for found, _ in known)} above {bound}" for bound in BOUNDS)
    worst = [line(row, sides) for _, row in known[:WORST]]
    told = f"{len(known)} timings by {sides[1].module}: geometric mean {mean:.2f}; {behind}"
    return "\n".join([told, "", "the worst", *worst])


def draw(rows: list[Row], sides: list[Side], file: Path) -> None:
    """Every ratio in order, for each size, above and below the line where both take the same time."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise SystemExit("--plot draws with Matplotlib: pip install matplotlib") from None
    figure, axes = pyplot.subplots(figsize=(9, 5))
    for size in SIZES:
        found = sorted(r for row in rows if row["size"] == size and (r := ratio(row, sides)))
        if found:
            axes.plot([n / len(found) for n in range(len(found))], found, label=f"{size} ({len(found)})")
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.set(yscale="log", xlabel="share of operations", ylabel=f"time by {sides[1].module}'s", title="steady times")
    axes.legend()
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="append", default=[], help="what the first lines say, with =PYTHON")
    parser.add_argument("-k", default="", help="only operations whose name has this in it")
    parser.add_argument("--platform", default="cpu", help="of polyax, and of JAX, which calls it the same")
    parser.add_argument("--part", default="0/1", help="2/8: the third of eight parts, for processes side by side")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--seconds", type=float, default=0.02, help="how long a turn lasts")
    parser.add_argument("--json", type=Path, help="where figures are kept")
    parser.add_argument("--plot", type=Path, help="a picture of the ratios (svg, png, pdf)")
    options = parser.parse_args()
    named = [p.partition("=") for p in options.peer]
    peers = [Side(module, python or sys.executable, options.platform) for module, _, python in named]
    sides = [Side("polyax", sys.executable, options.platform), *peers]
    kept = options.json.read_text().splitlines() if options.json and options.json.exists() else []
    rows: list[Row] = [json.loads(text) for text in kept]
    known = {(row["name"], row["size"]) for row in rows}
    print(f"{'microseconds':40}" + "".join(f"{s.module:>12}" for s in sides) + f"{'ratio':>8}", flush=True)
    try:
        part, parts = map(int, options.part.split("/"))
        for operation, size, gradient in list(cases(options.k, options.sizes.split(",")))[part::parts]:
            if (label(operation.name, gradient), size) in known:
                continue
            rows.append(measured(sides, operation, size, gradient, options.seconds))
            print(line(rows[-1], sides), flush=True)
            if options.json:
                with options.json.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    finally:
        for side in sides:
            side.close()
    if peers:
        print("\n" + summary(rows, sides))
        if options.plot:
            draw(rows, sides, options.plot)


if __name__ == "__main__":
    main()
