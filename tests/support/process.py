"""Runs a program in a fresh interpreter: for what depends on imports and environment variables."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

FAULTS = {"PYTHONFAULTHANDLER": "1"}
"""A process that native code ends says where its threads were."""


def run(program: str, *, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
    """The finished process; output is text. Environment variables are added to the test's own.

    Bytecode is cached, as it is for users, so that import times mean something.
    """
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | FAULTS | environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def output(program: str, *, timeout: float = 120, **environment: str) -> str:
    """What the program prints; fails with its traceback if it fails."""
    done = run(program, timeout=timeout, **environment)
    assert done.returncode == 0, f"exit status {done.returncode} (a negative one is a signal)\n{done.stderr}"
    return done.stdout.strip()


def cases(*paths: Path, timeout: float = 300, **environment: str) -> None:
    """Runs the tests of files in a process of its own: for what depends on how many devices there are.

    Some must run, and none may be skipped: with too few devices the file would prove nothing.
    """
    chosen = shlex.split(environment.pop("ARGUMENTS", ""))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-x", *chosen, *map(str, paths)],
        env=os.environ | FAULTS | environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    ran = " passed" in done.stdout and " skipped" not in done.stdout
    assert done.returncode == 0 and ran, done.stdout + done.stderr
