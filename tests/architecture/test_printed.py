"""What a document says that commands print, they print. What code of tutorials prints is compared in `test_docs`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import polyax
from polyax.__main__ import main
from support.printed import words
from support.process import output
from support.sources import ROOT

INSPECTING = (ROOT / "docs/inspecting.md").read_text()
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"prints \(on the cpu backend\):\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_table_of_a_program() -> None:
    told = output(PYTHON.findall(INSPECTING)[0], POLYAX_DEVICE="cpu")
    assert words(told) == words(PRINTED.findall(INSPECTING)[0])


def test_the_table_of_predictions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = re.findall(r"`python -m polyax (scale model.py:step .*?)`", INSPECTING)
    (tmp_path / "model.py").write_text(PYTHON.findall(INSPECTING)[-1])
    with polyax.default_device("cpu"):
        assert main([a.replace("model.py", str(tmp_path / "model.py")) for a in shlex.split(line)]) == 0
    assert words(capsys.readouterr().out) == words(PRINTED.findall(INSPECTING)[1])
