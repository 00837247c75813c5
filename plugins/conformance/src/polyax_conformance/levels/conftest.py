"""All levels are strict, whoever runs them and however: no primitive may look done while NumPy does its work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import polyax

STRICT = {"checks": True, "host_fallback": "error"}
SETTINGS = {"POLYAX_CHECKS": "1", "POLYAX_HOST_FALLBACK": "error"}
"""The same for processes that tests start."""


@pytest.fixture(autouse=True, scope="module")
def strict() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, polyax.config.override(**STRICT):
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        yield
