"""``shard_map`` in processes with eight virtual devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import process

HERE = Path(__file__).parent


@pytest.mark.parametrize("platform_name", ["cpu", "reference"])
@pytest.mark.parametrize("cases", ["shard_map_cases.py", "parallel_cases.py"])
def test_on_eight_virtual_devices(cases, platform_name):
    process.cases(HERE / cases, POLYAX_DEVICE=platform_name, POLYAX_NUM_CPU_DEVICES="8")
