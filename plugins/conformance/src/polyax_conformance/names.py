"""What tests are called in gaps and on score cards.

Must not import polyax: pytest loads this before a suite has set the environment that polyax reads.
"""

from __future__ import annotations

from pathlib import Path

LEVELS = ("contract", "scalars", "primitives", "transformations", "control_flow", "spmd", "faults", "speed")
"""What is judged, in order. Of speed, only that results are right."""


def name_of(nodeid: str) -> str:
    """The level and the test; of a test in no level, its file and the test.

    >>> name_of("levels/scalars/test_scalars.py::test_choices[cpu]")
    'scalars::test_choices[cpu]'
    >>> name_of("tests/test_mine.py::test_choices[mine]")
    'test_mine::test_choices[mine]'
    """
    file, _, test = nodeid.partition("::")
    path = Path(file)
    return f"{path.parent.name if path.parent.name in LEVELS else path.stem}::{test}"
