"""Runs the programs of one library: ``python programs with_optax`` prints their numbers as JSON, one line each."""

import importlib
import json
import os
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def main(module: str, *chosen: str) -> None:
    """Prints ``{"program": ..., "numbers" or "error": ..., "seconds": ...}`` for each."""
    from common import PROGRAMS, numbers

    try:
        importlib.import_module(module)
    except Exception as e:
        print(json.dumps({"program": "import", "error": _short(e)}), flush=True)
        return
    for name, program in PROGRAMS.items():
        if chosen and name not in chosen:
            continue
        begin = time.perf_counter()
        told = {"program": name, "rtol": program.rtol, "atol": program.atol}
        try:
            told["numbers"] = numbers(program.run())
        except Exception as e:
            told["error"] = _short(e)
            traceback.print_exc()
        told["seconds"] = round(time.perf_counter() - begin, 2)
        print(json.dumps(told), flush=True)
    if (door := sys.modules.get("polyax.as_jax")) is not None:
        print(json.dumps({"program": "missing", "names": door.missing()}), flush=True)


def _short(e: Exception) -> str:
    return f"{type(e).__name__}: {e}"[:2000]


if __name__ == "__main__":
    main(*sys.argv[1:])
