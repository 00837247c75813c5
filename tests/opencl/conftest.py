"""Tests of the opencl backend alone; the shared suite runs on it through the ``platform`` fixture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import polyax
from polyax_opencl.backend import OpenCLBackend
from polyax_opencl.probe import find
from polyax_opencl.runtime import OpenCLRuntime

REASON = find().why_none


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if REASON is None:
        return
    for item in items:
        if "opencl" in item.path.parts:
            item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture(scope="session")
def two() -> OpenCLBackend:
    """Two devices: the first one twice, each time with a context, a queue and memory of its own."""
    return OpenCLBackend(find().devices[:1] * 2)


@pytest.fixture
def opencl(two: OpenCLBackend) -> Iterator[OpenCLBackend]:
    with polyax.default_device(two.devices()[0]):
        yield two


@pytest.fixture(scope="session")
def runtime() -> OpenCLRuntime:
    return OpenCLRuntime(find().devices[0])
