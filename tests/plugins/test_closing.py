"""Backends are closed once, when the process ends and what they were to do is done."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support import distributions
from support.process import run

CLOSING = distributions.backend("fake").replace(
    "    @hookimpl",
    """
        def close(self):
            print("closed", self.name)
            {then}

    @hookimpl""",
)
PROGRAM = """
import time
import numpy as np
import polyax

def late(x):
    time.sleep(0.2)
    print("noted")

polyax.jit(lambda x: polyax.debug.callback(late, x))(np.ones(3))
"""


def ended(folder: Path, program: str, then: str = "return") -> tuple[str, str]:
    """What a program printed that uses a backend with something to close."""
    distributions.make(folder, "polyax-fake", CLOSING.replace("{then}", then), entry="fake", version="1.2.3")
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    done = run(program, PYTHONPATH=path, POLYAX_PLATFORMS="fake")
    return done.stdout, done.stderr


def test_it_is_closed_after_everything_else(tmp_path: Path) -> None:
    assert ended(tmp_path, PROGRAM)[0].split("\n")[:2] == ["noted", "closed fake"]


@pytest.mark.parametrize(
    "program", ["import polyax", "import os, polyax; polyax.devices(); os.fork() or exit()\nos._exit(0)"]
)
def test_not_if_it_was_never_opened_nor_in_a_fork(tmp_path: Path, program: str) -> None:
    assert "closed" not in ended(tmp_path, program)[0]


def test_what_it_raises_names_its_plugin(tmp_path: Path) -> None:
    out, told = ended(tmp_path, "import polyax; polyax.devices()", "raise OSError('the bus is gone')")
    assert "closed fake" in out
    assert (
        "polyax: plugin 'fake' of polyax-fake 1.2.3 couldn't close 'fake': OSError('the bus is gone'); update" in told
    )
