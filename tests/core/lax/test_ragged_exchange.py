"""``ragged_all_to_all``, which needs several devices."""

from pathlib import Path

from support import process


def test_on_two_devices():
    process.cases(Path(__file__).with_name("ragged_exchange_cases.py"), POLYAX_DEVICE="cpu", POLYAX_NUM_CPU_DEVICES="2")
