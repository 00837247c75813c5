"""What users read on machines that lack something for CUDA."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from polyax_cuda import plugin


class Failure(RuntimeError):
    status = 0


def a_runtime(status: int, driver: int = 12020) -> SimpleNamespace:
    def count() -> int:
        error = Failure("cudaErrorSomething")
        error.status = status
        raise error

    return SimpleNamespace(
        CUDARuntimeError=Failure,
        getDeviceCount=count,
        driverGetVersion=lambda: driver,
        runtimeGetVersion=lambda: 12090,
    )


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (35, "supports CUDA 12.2, but CuPy was built for 12.9; update the driver"),
        (100, "CUDA_VISIBLE_DEVICES"),
        (999, "cudaErrorSomething"),
    ],
)
def test_device_reasons(status: int, words: str) -> None:
    assert words in str(plugin.why_no_device(a_runtime(status)))


def test_no_driver_is_told_before_cupy_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(plugin.ctypes, "CDLL", missing)
    assert "no NVIDIA driver" in str(plugin.why_not())


def test_no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "find_spec", lambda name: None)
    assert "pip install cupy-cuda12x" in str(plugin.why_not())
