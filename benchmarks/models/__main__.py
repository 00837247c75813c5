"""Runs one program: ``python models with_flax flax_mlp``, and tells its times as lines of JSON.

Garbage is collected before each is timed: importing so many modules leaves a collection of everything about to
happen (a tenth of a second, here and with JAX), and which of the two it would meet in its first step is chance.

The first line says what setting up and the first step took. For each line of standard input, a number, as many
steps are run, and the seconds of one are told.
"""

import gc
import importlib
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def main(module: str, name: str) -> None:
    """Prints the times; what libraries print goes to standard error."""
    told, sys.stdout = sys.stdout, sys.stderr
    import jax
    from common import PROGRAMS

    importlib.import_module(module)

    def timed(work):
        began = time.perf_counter()
        result = jax.block_until_ready(work())
        return time.perf_counter() - began, result

    gc.collect()
    began = time.perf_counter()
    step = PROGRAMS[name]()
    setup = time.perf_counter() - began
    gc.collect()
    first, _ = timed(step)
    print(json.dumps({"setup": setup, "first": first}), file=told, flush=True)
    for line in sys.stdin:
        count = int(line)
        seconds = sum(timed(step)[0] for _ in range(count))
        print(json.dumps(seconds / count), file=told, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
