"""Interpreters beside the main one are refused, on every Python that has them."""

from __future__ import annotations

import importlib
import sys

import pytest

from support.process import output

REMEDY = "polyax can't be imported in a subinterpreter"
INSIDE = """
    import sys
    sys.path[:] = {path!r}
    try:
        import polyax
    except ImportError as e:
        print(type(e).__name__, e)
    print("numpy" in sys.modules)
"""


@pytest.mark.parametrize("module", ["_interpreters", "_xxsubinterpreters"])
def test_an_interpreter_beside_the_main_one(module: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError:
        pytest.skip(f"Python {sys.version_info.major}.{sys.version_info.minor} has no {module}")
    printed = output(f"""
        import {module} as interpreters, sys, textwrap
        import polyax  # the main one has it, and keeps it
        other = interpreters.create()
        interpreters.run_string(other, textwrap.dedent({INSIDE!r}).format(path=sys.path))
        interpreters.destroy(other)
        print(polyax.numpy.ones(2).sum())
    """)
    refused, with_numpy, total = printed.splitlines()
    assert refused.startswith(f"ImportError {REMEDY}") and "WSGIApplicationGroup" in refused
    assert with_numpy == "False" and total == "2.0"
