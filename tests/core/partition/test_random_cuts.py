"""Random programs on random meshes give what they give on one device."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from core.partition.random_cuts import sweep

import polyax

BLOCK = 20
"""Programs in one test."""


@pytest.fixture(autouse=True)
def on_the_reference() -> Iterator[None]:
    with polyax.default_device(polyax.devices("reference")[0]):
        yield


@pytest.mark.parametrize("first", range(0, 80, BLOCK))
def test_random_cuts(first: int) -> None:
    sweep(range(first, first + BLOCK))
