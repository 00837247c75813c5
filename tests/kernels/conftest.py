"""What tests of the kernel compiler share."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from polyax_kernels.emit import schedule


@pytest.fixture
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Squares and cuts are made of kernels of any size."""
    monkeypatch.setattr(schedule, "TILED", 1)


@pytest.fixture(scope="session")
def opencl() -> SimpleNamespace:
    """What library calls may use on the first OpenCL device."""
    plugin = pytest.importorskip("polyax_opencl.plugin")
    if (reason := plugin.why_not()) is not None:
        pytest.skip(reason)
    from polyax_opencl.emitter import OpenCLEmitter
    from polyax_opencl.probe import find
    from polyax_opencl.runtime import OpenCLRuntime

    runtime = OpenCLRuntime(find().devices[0])
    return SimpleNamespace(runtime=runtime, dialect=OpenCLEmitter, allocate=runtime.allocate)
