"""Runs programs of JAX's libraries, each library in a process of its own, and compares their numbers with JAX's.

``python running.py --record PYTHON [MODULE ...]`` records what programs give there, where JAX itself is installed;
``python running.py --report PYTHON`` writes ``docs/libraries.md`` from a run on polyax.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAMS = HERE / "programs"
EXPECTED = HERE / "expected"
MODULES = sorted(p.stem for p in PROGRAMS.glob("with_*.py"))


def python() -> Path:
    """The Python that has the libraries, and polyax without JAX."""
    return Path(os.environ.get("POLYAX_LIBRARIES_PYTHON", ROOT / ".libraries" / "bin" / "python"))


def run(interpreter: Path, module: str, *, door: bool, timeout: float = 900.0) -> dict[str, dict[str, Any]]:
    """What each program of a module printed; an entry ``import`` with an error if it can't be imported."""
    opened = ["-m", "polyax.as_jax"] if door else []
    environment = {**os.environ, "POLYAX_PLATFORMS": "cpu", "JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "ignore"}
    for name in ("POLYAX_CHECKS", "POLYAX_HOST_FALLBACK"):  # programs run as users run them
        environment.pop(name, None)
    done = subprocess.run(
        [str(interpreter), *opened, str(PROGRAMS), module],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"program"')]
    if done.returncode:
        lines.append({"program": "end", "error": f"exit status {done.returncode}: {done.stderr[-2000:]}"})
    elif os.environ.get("POLYAX_LIBRARIES_VERBOSE"):
        print(done.stderr[-6000:], file=sys.stderr)
    return {line["program"]: line for line in lines}


def difference(got: Any, wanted: Any, rtol: float, atol: float, path: str = "") -> str | None:
    """Where numbers differ from JAX's by more than the tolerance, in words; None if they don't."""
    if isinstance(wanted, dict):
        if got.keys() != wanted.keys():
            return f"{path}: names {sorted(got)} and {sorted(wanted)}"
        found = (difference(got[k], wanted[k], rtol, atol, f"{path}/{k}") for k in wanted)
        return next((text for text in found if text is not None), None)
    x, y = np.asarray(got, np.float64), np.asarray(wanted, np.float64)
    if x.shape != y.shape:
        return f"{path}: shape {x.shape}, with JAX {y.shape}"
    if np.allclose(x, y, rtol=rtol, atol=atol, equal_nan=True):
        return None
    worst = np.unravel_index(np.nanargmax(np.abs(x - y) - rtol * np.abs(y)), x.shape)
    return f"{path}{list(map(int, worst))}: {x[worst]!r}, with JAX {y[worst]!r}"


def verdict(module: str, name: str, told: dict[str, Any]) -> str | None:
    """What is wrong with the outcome of a program; None if it agrees with what is recorded."""
    if "error" in told:
        return told["error"]
    recorded = json.loads((EXPECTED / f"{module}.json").read_text())
    return difference(told["numbers"], recorded[name], told["rtol"], told["atol"])


def record(interpreter: Path, modules: list[str]) -> None:
    """Writes what JAX gives into ``expected``."""
    for module in modules:
        told = run(interpreter, module, door=False)
        failed = {name: line["error"] for name, line in told.items() if "error" in line}
        if failed:
            raise SystemExit(f"{module} fails with JAX: {failed}")
        recorded = {name: _rounded(line["numbers"]) for name, line in told.items()}
        (EXPECTED / f"{module}.json").write_text(json.dumps(recorded, indent=1) + "\n")
        print(module, {name: line["seconds"] for name, line in told.items()}, flush=True)


def _rounded(x: Any) -> Any:
    if isinstance(x, dict):
        return {k: _rounded(v) for k, v in x.items()}
    return [_rounded(v) for v in x] if isinstance(x, list) else float(f"{x:.9g}")


def compare(interpreter: Path, modules: list[str]) -> dict[str, dict[str, str | None]]:
    """The verdicts on the programs of modules, printed as they come."""
    verdicts: dict[str, dict[str, str | None]] = {}
    for module in modules:
        told = run(interpreter, module, door=True)
        verdicts[module] = {name: verdict(module, name, line) for name, line in told.items()}
        for name, text in verdicts[module].items():
            print(f"{module}.{name}: {text or 'agrees'} ({told[name].get('seconds')} s)", flush=True)
    return verdicts


def main() -> None:
    """Runs the commands above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, metavar="PYTHON")
    parser.add_argument("modules", nargs="*", default=MODULES)
    options = parser.parse_args()
    if options.record:
        record(options.record, options.modules)
    else:
        compare(python(), options.modules)


if __name__ == "__main__":
    main()
