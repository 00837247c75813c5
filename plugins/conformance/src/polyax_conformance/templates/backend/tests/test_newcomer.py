"""Grades the backend by polyax's conformance suite. Raise LEVELS as it passes more."""

from pathlib import Path

import numpy as np
import polyax
from polyax_conformance.gaps import read_gaps
from polyax_conformance.suite import grade

GAPS = read_gaps(Path(__file__).parents[1] / "gaps.toml")
LEVELS = [0, 1]


def test_a_first_array():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with polyax.default_device("newcomer"):
        y = polyax.jit(lambda x: polyax.numpy.exp(x).sum(axis=1))(x)
    assert y.device.platform == "newcomer"
    np.testing.assert_allclose(y, np.exp(x).sum(axis=1), rtol=1e-6)


def test_levels():
    card = grade("newcomer", LEVELS, GAPS)
    assert not card.failures, card.text()
    assert card.level == max(LEVELS), card.text()
