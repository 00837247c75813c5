"""Starts programs under ``mpiexec``, on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

MPIEXEC = Path(sys.executable).with_name("mpiexec")


def launch(
    processes: int, *command: str, devices: int = 1, timeout: float = 200, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs Python with these arguments in so many processes, each with so many devices."""
    settings = {"POLYAX_DEVICE": "cpu", "POLYAX_NUM_CPU_DEVICES": str(devices)}
    return subprocess.run(
        [str(MPIEXEC), "-n", str(processes), sys.executable, *command],
        env=os.environ | settings | environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def cases(paths: Sequence[Path], processes: int, devices: int = 1, **environment: str) -> None:
    """Runs the tests of some files in all processes together; each runs all of them, in the same order."""
    pytest = "-m", "pytest", "-p", "no:cacheprovider", "-x"
    done = launch(processes, *pytest, *map(str, paths), devices=devices, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" passed") == processes and " skipped" not in done.stdout, done.stdout
