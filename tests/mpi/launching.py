"""Starts programs under ``mpiexec``, on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from support.process import finished

MPIEXEC = Path(sys.executable).with_name("mpiexec")


def launch(
    processes: int, *command: str, devices: int = 1, timeout: float = 500, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs Python with these arguments in so many processes, each with so many devices; ``timeout`` is for hangs."""
    settings = {"POLYAX_DEVICE": "cpu", "POLYAX_NUM_CPU_DEVICES": str(devices)}
    words = [MPIEXEC, "-n", str(processes), sys.executable, *command]
    return finished(words, timeout, os.environ | settings | environment)


def cases(paths: Sequence[Path], processes: int, devices: int = 1, *chosen: str, **environment: str) -> None:
    """Runs the tests of some files in all processes together; each runs all of them, or those chosen by arguments of
    pytest, in the same order."""
    pytest = "-m", "pytest", "-p", "no:cacheprovider", "-x", *chosen
    done = launch(processes, *pytest, *map(str, paths), devices=devices, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" passed") == processes and " skipped" not in done.stdout, done.stdout
