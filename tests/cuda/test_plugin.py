"""What users read on machines that lack something for CUDA."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from polyax_cuda import plugin


class Failure(RuntimeError):
    pass


def no_devices() -> int:
    raise Failure("cudaErrorNoDevice: no CUDA-capable device is detected")


def test_the_reason_of_the_driver_and_what_to_do() -> None:
    runtime = SimpleNamespace(CUDARuntimeError=Failure, getDeviceCount=no_devices)
    assert "no CUDA-capable device is detected; see what nvidia-smi says" in str(plugin.why_no_device(runtime))


def test_no_driver_is_told_before_cupy_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(plugin.ctypes, "CDLL", missing)
    assert "no NVIDIA driver" in str(plugin.why_not())


def test_no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert "pip install cupy-cuda12x" in str(plugin.why_not())
