"""``pmap`` in processes with eight virtual devices. What holds on all platforms is in the conformance suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import process

CASES = Path(__file__).with_name("pmap_cases.py")


@pytest.mark.parametrize("platform_name", ["cpu", "reference"])
def test_on_eight_virtual_devices(platform_name):
    process.cases(CASES, POLYAX_DEVICE=platform_name, POLYAX_NUM_CPU_DEVICES="8")
