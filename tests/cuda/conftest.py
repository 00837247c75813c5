"""The cuda backend on an emulated GPU: tests that take ``gpu`` run CUDA C, on the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

import polyax
from polyax_cuda.backend import CudaBackend
from polyax_cuda.check import H100
from support.emulator import EmulatedRuntime


class EmulatedBackend(CudaBackend):
    """Without NVIDIA's libraries, which this machine may have."""

    def lowerings(self) -> Mapping[Any, Any]:
        return {}


@pytest.fixture(scope="session")
def emulated() -> CudaBackend:
    """Two devices; groups of the second one are small."""
    return EmulatedBackend("cuda", [EmulatedRuntime(H100), EmulatedRuntime(replace(H100, group=32, units=2))])


@pytest.fixture
def gpu(emulated: CudaBackend) -> Iterator[CudaBackend]:
    with polyax.default_device(emulated.devices()[0]):
        yield emulated
