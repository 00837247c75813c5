"""What all tests share: strict settings, the ``platform`` fixture, and honest gaps.

A test that takes ``platform`` runs once on each platform that is installed, with its first device as the default; on
the teaching backend only if it is marked ``sample``. A gap is marked ``notimpl``, ``notyet`` or ``never``, with
platforms and a reason: the test must fail there, so that closing a gap turns the build red until the marker goes.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from importlib.metadata import entry_points

import pytest

SETTINGS = {"POLYAX_CHECKS": "1", "POLYAX_HOST_FALLBACK": "error"}
GAPS = ("notimpl", "notyet", "never")

os.environ.update(SETTINGS)
if "POLYAX_CACHE_DIR" not in os.environ:  # workers and subprocesses inherit it
    os.environ["POLYAX_CACHE_DIR"] = tempfile.mkdtemp(prefix="polyax-tests-")
    atexit.register(shutil.rmtree, os.environ["POLYAX_CACHE_DIR"], ignore_errors=True)


def installed_platforms() -> list[str]:
    found = {e.name for e in entry_points(group="polyax")}
    return ["reference", *(name for name in ("cpu", "hello_c") if name in found)]


@pytest.fixture(params=installed_platforms())
def platform(request: pytest.FixtureRequest) -> Iterator[str]:
    import polyax

    with polyax.default_device(polyax.devices(request.param)[0]):
        yield request.param


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if platform_of(item) == "hello_c" and not item.get_closest_marker("sample")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    for item in items:
        mark_gap(item)


def platform_of(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("platform") if callspec else None


def mark_gap(item: pytest.Item) -> None:
    for kind in GAPS:
        for gap in item.iter_markers(kind):
            platforms, reason = gap.args
            if platform_of(item) in platforms:
                item.add_marker(pytest.mark.xfail(reason=f"{kind}: {reason}", strict=True))
