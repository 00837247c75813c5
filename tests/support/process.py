"""Runs a program in a fresh interpreter: for what depends on imports and environment variables."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def run(program: str, *, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
    """The finished process; output is text. Environment variables are added to the test's own.

    Bytecode is cached, as it is for users, so that import times mean something.
    """
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def output(program: str, *, timeout: float = 120, **environment: str) -> str:
    """What the program prints; fails with its traceback if it fails."""
    done = run(program, timeout=timeout, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
