"""How many devices the host has."""

from __future__ import annotations

import pytest

from polyax.ir.config import config
from polyax.reference.backend import ReferenceBackend


@pytest.mark.parametrize(
    ("set_to", "flags", "count"),
    (
        (-1, "", 1),
        (3, "--xla_force_host_platform_device_count=4", 3),
        (-1, "--xla_cpu_multi_thread_eigen=false --xla_force_host_platform_device_count=4", 4),
    ),
)
def test_the_option_wins_over_the_flag_of_xla(
    set_to: int, flags: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_FLAGS", flags)
    with config.override(num_cpu_devices=set_to):
        devices = ReferenceBackend().devices()
    assert [d.id for d in devices] == list(range(count))
