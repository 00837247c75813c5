"""What tests of native code share: that Python runs no step, and the text of the functions of loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import polyax
from polyax.ir.config import config
from polyax_cpu import machine_code
from polyax_cpu.executable import CpuExecutable


@pytest.fixture
def in_64_bits() -> Iterator[None]:
    """On the cpu."""
    with config.override(enable_x64=True), polyax.default_device(polyax.devices("cpu")[0]):
        yield


@pytest.fixture(params=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of which Python runs a step itself fail meanwhile."""

    def refuse(self: object, step: object) -> None:
        raise AssertionError(f"Python runs {step}")

    monkeypatch.setattr(CpuExecutable, "runner", refuse)


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The text of the functions of loops and branches that were made meanwhile."""
    texts: list[str] = []
    real = machine_code.object_code

    def object_code(text: str, *how: Any) -> bytes:
        if " @control(" in text:
            texts.append(text)
        return real(text, *how)

    monkeypatch.setattr(machine_code, "object_code", object_code)
    monkeypatch.setattr(machine_code, "kept", lambda key: None)  # else nothing is written
    return texts
