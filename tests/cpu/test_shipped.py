"""Object code that comes with the package: found by its text, for processors that run it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from polyax_cpu import compiler, machine_code, processors, shipped

TEXT = "define i32 @seven() {\n  ret i32 7\n}\n"
HERE = [target for target in processors.TARGETS if processors.runs(target, processors.host())]


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
