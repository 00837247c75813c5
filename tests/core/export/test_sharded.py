"""Exported functions on several devices."""

from __future__ import annotations

from pathlib import Path

from support import process


def test_sharded() -> None:
    cases = Path(__file__).parent / "sharded_cases.py"
    process.cases(cases, POLYAX_DEVICE="cpu", POLYAX_NUM_CPU_DEVICES="8")
