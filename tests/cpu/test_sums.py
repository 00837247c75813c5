"""Blocks of sums: which rows and vectors are taken together."""

from __future__ import annotations

from polyax_cpu.libraries.sums import IN_FEW, IN_MANY, SumsKind, sums_kind


def test_sums_fill_many_registers() -> None:
    assert sums_kind(96, 96, 16, IN_MANY) == SumsKind(8, 3, whole=True)
    assert sums_kind(64, 64, 16, IN_MANY) == SumsKind(6, 4, whole=True)
    assert sums_kind(3, 64, 16, IN_MANY) == SumsKind(3, 4, whole=True)
    assert sums_kind(256, 16, 16, IN_MANY) == SumsKind(24, 1, whole=True)
    assert sums_kind(14, 256, 16, IN_MANY) == SumsKind(7, 2, whole=True)
    assert sums_kind(28, 128, 16, IN_MANY) == SumsKind(6, 4, whole=True)


def test_sums_fill_few_registers() -> None:
    assert sums_kind(96, 48, 8, IN_FEW) == SumsKind(4, 3, whole=True)
    assert sums_kind(96, 32, 8, IN_FEW) == SumsKind(6, 2, whole=True)
    assert sums_kind(256, 8, 8, IN_FEW) == SumsKind(12, 1, whole=True)


def test_vectors_that_columns_do_not_fill_have_some_lanes() -> None:
    assert sums_kind(96, 90, 16, IN_MANY) == SumsKind(8, 3, whole=False)
    assert sums_kind(96, 80, 16, IN_MANY) == SumsKind(24, 1, whole=True)
    assert sums_kind(256, 7, 8, IN_FEW) == SumsKind(12, 1, whole=False)
