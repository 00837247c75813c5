"""``pmap`` in processes with several devices: eight virtual ones, and parts of a processor under OpenCL."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import process

CASES = Path(__file__).with_name("pmap_cases.py")


@pytest.mark.parametrize("platform_name", ["cpu", "reference"])
def test_on_eight_virtual_devices(platform_name):
    process.cases(CASES, POLYAX_DEVICE=platform_name, POLYAX_NUM_CPU_DEVICES="8")


@pytest.mark.parametrize("platform_name", ["opencl", "hello_c"])
def test_on_two_devices(platform_name):
    process.cases(CASES, POLYAX_DEVICE=platform_name, POLYAX_NUM_CPU_DEVICES="2", ARGUMENTS="-m sample")
