"""Devices that meet in loops, branches and callbacks, in processes that have four."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import process


@pytest.mark.parametrize("platform_name", ["cpu", "reference", "hello_c", "opencl"])
def test_on_four_virtual_devices(platform_name: str) -> None:
    cases = Path(__file__).with_name("meeting_cases.py")
    process.cases(cases, POLYAX_DEVICE=platform_name, POLYAX_NUM_CPU_DEVICES="4")
