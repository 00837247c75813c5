"""What JAX's guides to many devices show, in programs of our own, section by section, on eight virtual devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import process

HERE = Path(__file__).parent


@pytest.mark.parametrize("names", [("placing", "automatic", "in_types"), ("by_hand", "strategies")], ids=" ".join)
def test_guides(names: tuple[str, ...]) -> None:
    files = [HERE / f"{name}_cases.py" for name in names]
    process.cases(*files, POLYAX_DEVICE="cpu", POLYAX_NUM_CPU_DEVICES="8")
