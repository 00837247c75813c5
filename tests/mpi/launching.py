"""Starts programs under ``mpiexec``, on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

MPIEXEC = Path(sys.executable).with_name("mpiexec")


def launch(
    processes: int, *command: str, devices: int = 1, timeout: float = 500, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs Python with these arguments in so many processes, each with so many devices; ``timeout`` is for hangs."""
    settings = {"POLYAX_DEVICE": "cpu", "POLYAX_NUM_CPU_DEVICES": str(devices)}
    words = [str(MPIEXEC), "-n", str(processes), sys.executable, *command]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, env=os.environ | settings | environment, start_new_session=True, **pipes) as started:
        try:
            out, err = started.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)  # the launcher's end alone would leave the others
            out, err = started.communicate()
            pytest.fail(f"it hangs: {' '.join(words)}\n{out}\n{err}")
    return subprocess.CompletedProcess(words, started.returncode, out, err)


def cases(paths: Sequence[Path], processes: int, devices: int = 1, *chosen: str, **environment: str) -> None:
    """Runs the tests of some files in all processes together; each runs all of them, or those chosen by arguments of
    pytest, in the same order."""
    pytest = "-m", "pytest", "-p", "no:cacheprovider", "-x", *chosen
    done = launch(processes, *pytest, *map(str, paths), devices=devices, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" passed") == processes and " skipped" not in done.stdout, done.stdout
