"""``python -m polyax.as_jax``: scripts and modules with the door open, and the stubs."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from polyax.door import stubs

_USAGE = """\
python -m polyax.as_jax SCRIPT.py [ARGUMENT ...]      run a script to which `import jax` means polyax
       python -m polyax.as_jax -m MODULE [ARGUMENT ...]      run a module so, such as pytest
       python -m polyax.as_jax stub [--remove] [--target DIRECTORY]"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["stub"]:
        return _stub(given[1:])
    if given[:1] == ["-m"] and len(given) > 1:
        sys.argv = given[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(given[1], run_name="__main__", alter_sys=True)
        return 0
    if not given or given[0].startswith("-"):
        print(f"usage: {_USAGE}", file=sys.stdout if given[:1] in (["-h"], ["--help"]) else sys.stderr)
        return 0 if given[:1] in (["-h"], ["--help"]) else 2
    if not Path(given[0]).exists():
        print(f"python -m polyax.as_jax: there is no file {given[0]!r}", file=sys.stderr)
        return 2
    sys.argv = given
    sys.path[0] = str(Path(given[0]).resolve().parent)
    runpy.run_path(str(Path(given[0]).absolute()), run_name="__main__")  # as Python has it: __file__ is absolute
    return 0


def _stub(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m polyax.as_jax stub", description=stubs.__doc__)
    parser.add_argument("--remove", action="store_true", help="remove them")
    parser.add_argument("--target", type=Path, default=stubs.site(), help="where; by default this Python's packages")
    options = parser.parse_args(arguments)
    try:
        done = stubs.remove(options.target) if options.remove else stubs.add(options.target)
    except (stubs.StubError, OSError) as e:
        print(f"polyax: {e}", file=sys.stderr)
        return 1
    verb = "removed" if options.remove else "made"
    print(f"{verb} {', '.join(done)} in {options.target}" if done else f"there are no stubs in {options.target}")
    return 0
