"""The platform that it adds to still passes the first levels of the suite, and those of GAPS."""

from pathlib import Path

from polyax_conformance.gaps import read_gaps
from polyax_conformance.suite import grade

GAPS = read_gaps(Path(__file__).parents[1] / "gaps.toml")


def test_levels():
    card = grade("cpu", [0, 1], GAPS)
    assert not card.failures, card.text()
