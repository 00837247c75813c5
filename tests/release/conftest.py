"""Scripts of ``release/`` as modules, for one test at a time."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.sources import ROOT


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """``script("check")`` is ``release/check.py``."""
    monkeypatch.syspath_prepend(str(ROOT / "release"))
    before = set(sys.modules)
    yield importlib.import_module
    for name in [n for n in sys.modules if n not in before and (ROOT / "release" / f"{n}.py").exists()]:
        del sys.modules[name]
