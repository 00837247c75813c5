"""Blocks of sums: which rows and vectors are taken together."""

from __future__ import annotations

from polyax_cpu.libraries.sums import IN_FEW, IN_MANY, SumsKind, sums_kind


def test_sums_fill_many_registers() -> None:
    assert sums_kind(96, 6, IN_MANY) == SumsKind(8, 3)
    assert sums_kind(64, 4, IN_MANY) == SumsKind(6, 4)
    assert sums_kind(3, 4, IN_MANY) == SumsKind(3, 4)
    assert sums_kind(256, 1, IN_MANY) == SumsKind(24, 1)
    assert sums_kind(14, 16, IN_MANY) == SumsKind(7, 2)
    assert sums_kind(28, 8, IN_MANY) == SumsKind(6, 4)


def test_sums_fill_few_registers() -> None:
    assert sums_kind(96, 6, IN_FEW) == SumsKind(4, 3)
    assert sums_kind(96, 4, IN_FEW) == SumsKind(6, 2)
    assert sums_kind(256, 1, IN_FEW) == SumsKind(12, 1)
