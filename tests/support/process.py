"""Runs a program in a fresh interpreter: for what depends on imports and environment variables."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

FAULTS = {"PYTHONFAULTHANDLER": "1"}
"""A process that native code ends says where its threads were."""


def finished(
    words: Sequence[str | Path], timeout: float, environment: Mapping[str, str] = os.environ, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What ``words`` start, once it has ended; output is text.

    A test whose process hangs fails, and says where that process and those of its group are. One that was forked may
    keep the pipes open for ever: what comes later than ten seconds after the end isn't waited for.
    """
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, env=environment, cwd=folder, start_new_session=True, **pipes) as started:
        try:
            out, err = started.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            pytest.fail(f"it hangs: {' '.join(map(str, words))}\n{_stopped(started)}")
    return subprocess.CompletedProcess(words, started.returncode, out, err)


def _stopped(started: subprocess.Popen[str]) -> str:
    """Ends a group of processes; what they said."""
    said = ""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.kill(started.pid, signal.SIGABRT)  # alone at first: the words of several would come mixed
        started.wait(10)
    for by in (signal.SIGABRT, signal.SIGKILL):  # after the first they say where they are, given FAULTS
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, by)
        try:
            return "".join(started.communicate(timeout=10))
        except subprocess.TimeoutExpired as e:
            said = "".join(part.decode(errors="replace") for part in (e.output, e.stderr) if part)
    return said


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
