"""Object code that comes with the package: found by its text, for processors that run it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from polyax_cpu import compiler, machine_code, shipped

TEXT = "define i32 @seven() {\n  ret i32 7\n}\n"
HERE = [target for target in shipped.TARGETS if shipped.runs(target, compiler.host())]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    yield tmp_path
    shipped._objects.cache_clear()


def test_code_is_found_by_text_and_level(folder: Path) -> None:
    if not HERE:
        pytest.skip("code is shipped for other processors alone")
    shipped.write(folder, HERE[0], {shipped.name_of(TEXT, 1, True): b"\n\0code", "other": b""})
    assert shipped.code(TEXT, 1) == b"\n\0code"
    assert shipped.code(TEXT, 2) is shipped.code(TEXT, 1, False) is shipped.code(TEXT + ";", 1) is None
    assert machine_code.made(TEXT, 1) == b"\n\0code"
    assert machine_code.made(TEXT, 2) == compiler.compile(TEXT, 2)


def test_nothing_is_found_where_nothing_was_shipped(folder: Path) -> None:
    assert shipped.code(TEXT, 1) is None
    assert machine_code.made(TEXT, 1) == compiler.compile(TEXT, 1)


def test_code_runs_where_all_its_features_are() -> None:
    best, usual = shipped.TARGETS
    assert shipped.runs(best, best) and shipped.runs(usual, best) and not shipped.runs(best, usual)
    assert not shipped.runs(usual, replace(best, triple="aarch64-unknown-linux-gnu"))
    assert (best.vector_bits, best.has_masks, best.has_ranges) == (512, True, True)
    assert (usual.vector_bits, usual.has_masks) == (256, False)


def test_other_processors_are_made_for_meanwhile() -> None:
    before = compiler.host()
    for target in shipped.TARGETS:
        with compiler.made_for(target):
            assert compiler.host() is target
            assert compiler.compile(TEXT, 1).startswith(b"\x7fELF")
    assert compiler.host() is before
