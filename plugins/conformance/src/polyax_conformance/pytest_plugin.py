"""For pytest, which finds it by itself: the fixture ``platform``, ``--platforms``, ``--gaps`` and marks of gaps.

A test that takes ``platform`` runs once on each platform that ``--platforms=opencl,mine`` names, with its first device
(or that of ``POLYAX_DEVICE``) as the default. A gap is declared in a ``gaps.toml``, or marked ``notimpl``, ``notyet``
or ``never``, with platforms and a reason: the test must fail there, so that closing a gap turns the build red until the
declaration goes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from polyax_conformance.names import name_of

if TYPE_CHECKING:
    from polyax_conformance.gaps import Gap

KINDS = {
    "notimpl": "the platform could do this, but doesn't yet; turns red when it does",
    "notyet": "waits for something else; turns red when it works",
    "never": "the platform can't do this, by its nature; turns red if it does",
}
DEFAULT = pytest.StashKey[Callable[[], Sequence[str]]]()
"""Where a suite's conftest puts the function that gives the platforms to run on if none is named."""
GAPS: pytest.StashKey[Mapping[str, Sequence[Gap]]] = pytest.StashKey()
"""The gaps of platforms; a suite's conftest may put them here, ``--gaps`` names the file of one."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("polyax")
    group.addoption("--platforms", help="where tests that take `platform` run; without it, where their suite says")
    group.addoption("--gaps", help="gaps.toml of the platform")


def pytest_configure(config: pytest.Config) -> None:
    for kind, meaning in KINDS.items():
        config.addinivalue_line("markers", f"{kind}(platforms, reason): {meaning}")
    config.addinivalue_line("markers", "sample: one of the few that slow platforms run")
    config.addinivalue_line("markers", "full: one of the many that a grade is made of")
    config.addinivalue_line("markers", "slow: takes seconds; left out with -m 'not slow'")


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    declared = dict(config.stash.get(GAPS, {}))
    if file := config.getoption("gaps"):
        from polyax_conformance.gaps import read_gaps

        found = read_gaps(Path(file))
        declared.update(dict.fromkeys(named_platforms(config), found))
    for item in items:
        where = platform_of(item)
        for kind, reason in (*marked(item, where), *told(item, declared.get(where or "", ()))):
            item.add_marker(pytest.mark.xfail(reason=f"{kind}: {reason}", strict=True))


def marked(item: pytest.Item, where: str | None) -> Iterator[tuple[str, str]]:
    """Gaps that marks declare."""
    for kind in KINDS:
        for gap in item.iter_markers(kind):
            platforms, reason = gap.args
            if where in platforms:
                yield kind, reason


def told(item: pytest.Item, gaps: Sequence[Gap]) -> Iterator[tuple[str, str]]:
    """Gaps that a file declares: the first that covers the test."""
    found = next((gap for gap in gaps if gap.covers(name_of(item.nodeid))), None)
    if found is not None:
        yield found.kind, found.reason
