"""JAX's libraries as they are installed, on polyax: their programs' numbers are those that JAX gave.

``make libraries`` installs them, without JAX, and runs this. The recorded numbers are in ``expected``.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from running import EXPECTED, MODULES, PAGE, python, run, verdict, versions

installed = pytest.mark.skipif(
    "POLYAX_LIBRARIES_PYTHON" not in os.environ, reason="JAX's libraries aren't installed: `make libraries` does that"
)
CASES = [(module, name) for module in MODULES for name in json.loads((EXPECTED / f"{module}.json").read_text())]


@functools.cache
def told(module: str) -> dict[str, dict[str, Any]]:
    return run(python(), module, door=True)


@installed
@pytest.mark.parametrize(
    ("module", "name"), [pytest.param(*c, marks=pytest.mark.xdist_group(c[0]), id="-".join(c)) for c in CASES]
)
def test_a_program_agrees_with_jax(module: str, name: str) -> None:
    outcomes = told(module)
    failed = outcomes.get("import", outcomes.get("end", {"error": "the program didn't run"}))
    assert (wrong := verdict(module, name, outcomes.get(name, failed))) is None, wrong


def test_the_page_on_libraries_has_all_of_them_at_their_versions() -> None:
    page = PAGE.read_text()
    assert not [module for module in MODULES if f"| `{module}.py` |" not in page]
    told = {name: f"{name} {version}" in page for name, version in versions().items() if name != "jmp"}
    assert all(told.values()), told
