"""Blocks of sums: which rows and vectors are taken together."""

from __future__ import annotations

import pytest

from polyax_cpu.libraries import sums
from polyax_cpu.libraries.sums import SumsKind, sums_kind


def test_sums_fill_many_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "SUMS", 24)
    monkeypatch.setattr(sums, "WIDTHS", (4, 3, 2, 1))
    assert sums_kind(96, 6) == SumsKind(8, 3)
    assert sums_kind(64, 4) == SumsKind(6, 4)
    assert sums_kind(3, 4) == SumsKind(3, 4)
    assert sums_kind(256, 1) == SumsKind(24, 1)
    assert sums_kind(14, 16) == SumsKind(7, 2)
    assert sums_kind(28, 8) == SumsKind(6, 4)


def test_sums_fill_few_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "SUMS", 12)
    monkeypatch.setattr(sums, "WIDTHS", (3, 2, 1))
    assert sums_kind(96, 6) == SumsKind(4, 3)
    assert sums_kind(96, 4) == SumsKind(6, 2)
    assert sums_kind(256, 1) == SumsKind(12, 1)
