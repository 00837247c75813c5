"""Times import, trace, compile, dispatch and run of a few programs, each in a process of its own.

    python benchmarks/run.py [-k WORD] [--seconds S] [--peer MODULE [--peer-python PYTHON]]

trace     a jaxpr from a function that was never traced
first     the first call of the jitted function: trace, compile (nothing is taken from disk), run
dispatch  until a later call returns
run       until its result is there, median
A peer is a module with JAX's interface; its columns stand beside ours.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from programs import PROGRAMS

COLUMNS = ("import", "trace", "first", "dispatch", "run")
NO_CACHE = {"POLYAX_COMPILATION_CACHE": "0", "JAX_ENABLE_COMPILATION_CACHE": "0"}
SUBMODULES = ("numpy", "nn", "tree_util")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def measure(module: str, program: str, seconds: float) -> dict[str, float]:
    """The times of one program in this process, in milliseconds."""
    importing, m = timed(lambda: load(module))
    fun, args = next(p for p in PROGRAMS if p.__name__ == program)(m)
    m.block_until_ready(args)
    tracing, _ = timed(lambda: m.make_jaxpr(fun)(*args))
    compiled = m.jit(lambda *a: fun(*a))  # a new function, so that nothing of it is in a cache
    first, _ = timed(lambda: m.block_until_ready(compiled(*args)))
    dispatch, run = steady(m, lambda: compiled(*args), seconds)
    return {name: 1e3 * t for name, t in zip(COLUMNS, (importing, tracing, first, dispatch, run))}


def load(module: str) -> Any:
    m = importlib.import_module(module)
    for name in SUBMODULES:
        importlib.import_module(f"{module}.{name}")
    return m


def steady(m: Any, call: Callable[[], Any], seconds: float) -> tuple[float, float]:
    """Medians of the time until a call returns, and until its result is there."""
    dispatches, runs, end = [], [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(runs) < 5:
        start = time.perf_counter()
        result = call()
        dispatches.append(time.perf_counter() - start)
        m.block_until_ready(result)
        runs.append(time.perf_counter() - start)
    return statistics.median(dispatches), statistics.median(runs)


def in_process(python: str, module: str, program: str, seconds: float) -> dict[str, float] | None:
    """``measure`` in a fresh process; None, with the cause on standard error, where the program doesn't run."""
    command = [python, __file__, "--worker", module, program, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | NO_CACHE)
    if done.returncode:
        print(f"{module} {program}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def row(label: str, times: dict[str, float] | None) -> str:
    cells = [f"{times[name]:10.4g}" if times else f"{'-':>10}" for name in COLUMNS]
    return f"{label:24}" + "".join(cells)


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        module, program, seconds = sys.argv[2:]
        print(json.dumps(measure(module, program, float(seconds))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", default="", help="only programs whose name holds this")
    parser.add_argument("--seconds", type=float, default=1.0, help="of steady calls for each program")
    parser.add_argument("--peer", help="module to set beside polyax")
    parser.add_argument("--peer-python", default=sys.executable)
    options = parser.parse_args()
    sides = [(sys.executable, "polyax")] + ([(options.peer_python, options.peer)] if options.peer else [])
    print(f"{'milliseconds':24}" + "".join(f"{name:>10}" for name in COLUMNS))
    for program in PROGRAMS:
        if options.k in program.__name__:
            for python, module in sides:
                times = in_process(python, module, program.__name__, options.seconds)
                print(row(f"{program.__name__:14} {module}", times), flush=True)


if __name__ == "__main__":
    main()
