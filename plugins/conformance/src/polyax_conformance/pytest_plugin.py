"""For pytest: the fixture ``platform``, ``--platforms`` and marks of gaps.

A test that takes ``platform`` runs once on each platform that ``--platforms=opencl,mine`` names, with its first device
(or that of ``POLYAX_DEVICE``) as the default. A gap is marked ``notimpl``, ``notyet`` or ``never``, with platforms and
a reason: the test must fail there, so that closing a gap turns the build red until the marker goes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import pytest

KINDS = ("notimpl", "notyet", "never")
DEFAULT = pytest.StashKey[Callable[[], Sequence[str]]]()
"""Where a suite's conftest puts the function that gives the platforms to run on if none is named."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--platforms", help="where tests that take `platform` run; without it, where their suite says")


def pytest_configure(config: pytest.Config) -> None:
    meanings = {
        "notimpl": "the platform could do this, but doesn't yet; turns red when it does",
        "notyet": "waits for something else; turns red when it works",
        "never": "the platform can't do this, by its nature; turns red if it does",
    }
    for kind in KINDS:
        config.addinivalue_line("markers", f"{kind}(platforms, reason): {meanings[kind]}")
    config.addinivalue_line("markers", "sample: one of the few that slow platforms run")


def named_platforms(config: pytest.Config) -> list[str]:
    """Where tests run."""
    named = config.getoption("platforms")
    return named.split(",") if named else list(config.stash.get(DEFAULT, lambda: ["reference"])())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "platform" in metafunc.fixturenames:
        metafunc.parametrize("platform", named_platforms(metafunc.config), indirect=True)


@pytest.fixture
def platform(request: pytest.FixtureRequest) -> Iterator[str]:
    """The platform's name; its device is the default one."""
    import polyax

    chosen = os.environ.get("POLYAX_DEVICE", "")
    with polyax.default_device(chosen if chosen.startswith(f"{request.param}:") else request.param):
        yield request.param


def platform_of(item: pytest.Item) -> str | None:
    """The platform that a test runs on, if it takes one."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("platform") if callspec else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for kind in KINDS:
            for gap in item.iter_markers(kind):
                platforms, reason = gap.args
                if platform_of(item) in platforms:
                    item.add_marker(pytest.mark.xfail(reason=f"{kind}: {reason}", strict=True))
