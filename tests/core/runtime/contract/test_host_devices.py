"""How many devices the host has."""

from __future__ import annotations

import pytest

import polyax
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


def test_it_is_too_late_once_there_are_devices() -> None:
    before = polyax.devices("reference") and polyax.config.num_cpu_devices
    polyax.config.update("jax_num_cpu_devices", before)
    with pytest.raises(RuntimeError, match="jax_num_cpu_devices config should be updated before backends"):
        polyax.config.update("jax_num_cpu_devices", before + 7)
    assert polyax.config.num_cpu_devices == before
