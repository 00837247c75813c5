"""What all tests share: strict settings, the ``platform`` fixture, and honest gaps.

A test that takes ``platform`` runs once on each platform that is installed, with its first device (or that of
``POLYAX_DEVICE``) as the default; on the teaching backend only if it is marked ``sample``, on cuda only where there is
a GPU. ``--platforms=opencl,mine`` names the platforms instead, a stranger's too. A gap is marked ``notimpl``,
``notyet`` or ``never``, with platforms and a reason: the test must fail there, so that closing a gap turns the build
red until the marker goes. All else runs on the cpu.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from importlib.metadata import entry_points

import pytest

SETTINGS = {"POLYAX_CHECKS": "1", "POLYAX_HOST_FALLBACK": "error", "POLYAX_TUNE": "off"}
GAPS = ("notimpl", "notyet", "never")

os.environ.update(SETTINGS)
if "POLYAX_CACHE_DIR" not in os.environ:  # workers and subprocesses inherit it
    os.environ["POLYAX_CACHE_DIR"] = tempfile.mkdtemp(prefix="polyax-tests-")
    atexit.register(shutil.rmtree, os.environ["POLYAX_CACHE_DIR"], ignore_errors=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--platforms", help="where tests that take `platform` run; without it, on all that are installed")


def installed_platforms() -> list[str]:
    found = {e.name for e in entry_points(group="polyax")}
    names = [name for name in ("cpu", "opencl", "hello_c") if name in found]
    return ["reference", *names, *(["cuda"] if "cuda" in found and has_gpu() else [])]


def has_gpu() -> bool:
    from polyax.runtime.plugins.registry import registry

    registry.load("cuda")
    return registry.why_unusable("cuda") is None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "platform" in metafunc.fixturenames:
        named = metafunc.config.getoption("platforms")
        metafunc.parametrize("platform", named.split(",") if named else installed_platforms(), indirect=True)


@pytest.fixture
def platform(request: pytest.FixtureRequest) -> Iterator[str]:
    import polyax

    chosen = os.environ.get("POLYAX_DEVICE", "")
    with polyax.default_device(chosen if chosen.startswith(f"{request.param}:") else request.param):
        yield request.param


def pytest_configure(config: pytest.Config) -> None:
    """Examples and tests that don't choose run on the cpu: OpenCL would be preferred, and compiles slowly."""
    import polyax
    from support import nvrtc

    if "POLYAX_DEVICE" not in os.environ and "cpu" in installed_platforms():
        polyax.config.update("device", "cpu")
    nvrtc.install(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if platform_of(item) == "hello_c" and not item.get_closest_marker("sample")]
    if left_out and not config.getoption("platforms"):
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
