"""The library's own semantics don't depend on the platform: its tables run on the reference backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import polyax


@pytest.fixture(autouse=True)
def reference() -> Iterator[None]:
    with polyax.default_device(polyax.devices("reference")[0]):
        yield
