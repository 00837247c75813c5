"""``jit`` over meshes, in processes that have eight devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import process

CASES = [Path(__file__).with_name(f"{name}_cases.py") for name in ("jit_mesh", "asked")]


@pytest.mark.parametrize(("platform_name", "chosen"), [("cpu", ""), ("reference", "-k 'not take_turns'")])
def test_on_eight_virtual_devices(platform_name: str, chosen: str) -> None:
    """Members of the reference wait for each other."""
    process.cases(*CASES, POLYAX_DEVICE=platform_name, POLYAX_NUM_CPU_DEVICES="8", ARGUMENTS=chosen)
