"""The cuda backend on an emulated GPU: every test here that takes ``gpu`` runs real kernels, on the host."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

import polyax
from polyax_cuda.backend import CudaBackend
from polyax_cuda.check import H100
from support.emulator import EmulatedRuntime


@pytest.fixture(scope="session")
def emulated() -> CudaBackend:
    return CudaBackend([EmulatedRuntime(H100), EmulatedRuntime(dataclasses.replace(H100, group=32, units=2))])


@pytest.fixture
def gpu(emulated: CudaBackend) -> Iterator[CudaBackend]:
    with polyax.default_device(emulated.devices()[0]):
        yield emulated
