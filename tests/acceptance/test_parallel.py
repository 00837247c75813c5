"""The small transformer of ``examples/parallel.py``: divided in any way, its losses are those of one device."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from mpi.launching import launch

from support.process import finished
from support.sources import ROOT

SCRIPT = str(ROOT / "examples/parallel.py")
WAYS = ["data", "tensor", "pipeline"]


def trained(devices: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    settings = {"POLYAX_PLATFORMS": "cpu", "POLYAX_NUM_CPU_DEVICES": str(devices)}
    command = [sys.executable, SCRIPT, *arguments]
    return finished(command, 200, os.environ | settings)


def assert_same_losses(done: subprocess.CompletedProcess[str], devices: int) -> None:
    """The script compares with a tolerance for long trainings; a few steps differ by rounding."""
    assert done.returncode == 0, done.stdout + done.stderr
    runs = re.findall(r"^(\w+) +on (\d) devices, .*  4: ([\d.]+)$", done.stdout, re.M)
    assert [(name, int(n)) for name, n, _ in runs] == [("one", 1), *((way, devices) for way in WAYS)], done.stdout
    (largest,) = re.findall(r"largest difference .*: (\S+) of the loss", done.stdout)
    assert float(largest) < 1e-5 and 1 < float(runs[0][2]) < 3


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_devices_of_one_process(devices: int) -> None:
    assert_same_losses(trained(devices, *WAYS, "--compare", "--steps", "4", "--batch", "16"), devices)


@pytest.mark.parametrize("processes", [2, 4])
def test_processes(processes: int) -> None:
    arguments = [*WAYS, "--compare", "--steps", "4", "--batch", "16"]
    assert_same_losses(launch(processes, SCRIPT, *arguments, POLYAX_PLATFORMS="cpu"), processes)


@pytest.mark.slow
def test_it_learns_to_sort() -> None:
    done = trained(2, "data", "--steps", "80")
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) < 1, "guessing gives 2.8"
