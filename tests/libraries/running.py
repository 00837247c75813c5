"""Runs programs of JAX's libraries, each library in a process of its own, and compares their numbers with JAX's.

``python running.py --record PYTHON [MODULE ...]`` records what programs give there, where JAX itself is installed;
``python running.py --report`` runs them on polyax and writes the tables of ``docs/libraries.md``.
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
PAGE = ROOT / "docs" / "libraries.md"
MODULES = sorted(p.stem for p in PROGRAMS.glob("with_*.py"))


def python() -> Path:
    """The Python that has the libraries, and polyax without JAX."""
    return Path(os.environ.get("POLYAX_LIBRARIES_PYTHON", ROOT / ".libraries" / "bin" / "python"))


def run(interpreter: Path, module: str, *, door: bool, timeout: float = 900.0) -> dict[str, dict[str, Any]]:
    """What each program of a module printed; an entry ``import`` with an error if it can't be imported, and one
    ``missing`` with the names of JAX that were asked for and aren't there."""
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


def compare(interpreter: Path, modules: list[str]) -> tuple[dict[str, dict[str, str | None]], dict[str, list[str]]]:
    """The verdicts on the programs of modules, printed as they come, and the names that each module missed."""
    verdicts: dict[str, dict[str, str | None]] = {}
    missing: dict[str, list[str]] = {}
    for module in modules:
        told = run(interpreter, module, door=True)
        missing[module] = told.pop("missing", {"names": []})["names"]
        verdicts[module] = {name: verdict(module, name, line) for name, line in told.items()}
        for name, text in verdicts[module].items():
            print(f"{module}.{name}: {text or 'agrees'} ({told[name].get('seconds')} s)", flush=True)
    return verdicts, missing


def versions() -> dict[str, str]:
    """The libraries and their versions, as they are pinned."""
    pinned = (ROOT / "requirements/libraries.txt").read_text().split("# What they need.")[0]
    return dict(line.split("==") for line in pinned.splitlines() if "==" in line)


def report(interpreter: Path, modules: list[str]) -> None:
    """Writes the tables of the page on libraries; rows of other modules stay."""
    verdicts, missing = compare(interpreter, modules)
    page = PAGE.read_text()
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `with_")}
    rows |= {f"{module}.py": _row(module, told) for module, told in verdicts.items()}
    head = "| programs | libraries | what they do | numbers |\n|---|---|---|---|\n"
    page = _between(page, "programs", head + "\n".join(rows[name] for name in sorted(rows)))
    if modules == MODULES:
        asked = sorted({name for names in missing.values() for name in names})
        by = {name: sorted(_short_of(module) for module in missing if name in missing[module]) for name in asked}
        page = _between(page, "gaps", "\n".join(f"* `{name}` ({', '.join(by[name])})" for name in asked) or "None.")
    PAGE.write_text(page)


def _row(module: str, told: dict[str, str | None]) -> str:
    wrong = {name: text for name, text in told.items() if text is not None}
    outcome = "as JAX's" if not wrong else "; ".join(f"{name}: {text}"[:160] for name, text in wrong.items())
    names = ", ".join(name.replace("_", " ") for name in told)
    return f"| `{module}.py` | {_libraries(module)} | {names} | {outcome} |"


def _libraries(module: str) -> str:
    text = (PROGRAMS / f"{module}.py").read_text()
    found = [name for name in versions() if f"import {_imported(name)}" in text or f"from {_imported(name)}" in text]
    return ", ".join(f"{name} {versions()[name]}" for name in found)


def _imported(library: str) -> str:
    """The name that a distribution is imported by."""
    names = {
        "dm-haiku": "haiku",
        "orbax-checkpoint": "orbax",
        "ott-jax": "ott",
        "tfp-nightly": "tensorflow_probability",
    }
    return names.get(library, library.replace("-", "_"))


def _short_of(module: str) -> str:
    return module.removeprefix("with_").replace("_", ".")


def _between(page: str, name: str, text: str) -> str:
    begin, end = f"<!-- {name}: written by tests/libraries/running.py -->", f"<!-- end of {name} -->"
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}"


def main() -> None:
    """Runs the commands above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, metavar="PYTHON")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("modules", nargs="*", default=MODULES)
    options = parser.parse_args()
    if options.record:
        record(options.record, options.modules)
    elif options.report:
        report(python(), options.modules)
    else:
        compare(python(), options.modules)


if __name__ == "__main__":
    main()
