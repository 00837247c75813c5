"""Runs a program in a fresh interpreter: for what depends on imports and environment variables."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

FAULTS = {"PYTHONFAULTHANDLER": "1"}
"""A process that native code ends says where its threads were."""


def finished(
    words: Sequence[str | Path], timeout: float, environment: Mapping[str, str] = os.environ, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What ``words`` start, once it has ended; output is text.

    A test whose process hangs fails, and says where that process and those of its group are. They write to files: a
    pipe would end only with the last one that was forked, which may be for ever.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        started = subprocess.Popen(words, env=environment, cwd=folder, stdout=out, stderr=err, start_new_session=True)
        hangs = not _ends(started, timeout)
        if hangs:
            _stop(started)
        printed, told = (file.seek(0) or file.read() for file in (out, err))
    if hangs:
        pytest.fail(f"it hangs: {' '.join(map(str, words))}\n{printed}\n{told}")
    return subprocess.CompletedProcess(words, started.returncode, printed, told)


def _ends(started: subprocess.Popen[bytes], timeout: float) -> bool:
    try:
        started.wait(timeout)
    except subprocess.TimeoutExpired:
        return False
    return True


def _stop(started: subprocess.Popen[bytes]) -> None:
    for by in (signal.SIGABRT, signal.SIGKILL):  # after the first they say where they are, given FAULTS
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, by)
        _ends(started, 10)


def run(program: str, *, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
    """The finished process; output is text. Environment variables are added to the test's own.

    Bytecode is cached, as it is for users, so that import times mean something.
    """
    own = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return finished([sys.executable, "-c", textwrap.dedent(program)], timeout, own | FAULTS | environment)


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
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-x", *chosen, *paths]
    done = finished(words, timeout, os.environ | FAULTS | environment)
    ran = " passed" in done.stdout and " skipped" not in done.stdout
    assert done.returncode == 0 and ran, done.stdout + done.stderr
