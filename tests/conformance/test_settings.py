"""What ``tests/conftest.py`` sets must hold in the process of the tests too, not only in those that they start."""

from __future__ import annotations

import os

import polyax


def test_settings_of_the_suite_are_those_of_its_process() -> None:
    config = polyax.config
    assert (config.checks, config.host_fallback) == (True, "error")
    assert config.cache_dir == os.environ["POLYAX_CACHE_DIR"]
