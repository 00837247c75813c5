"""What all tests share: strict settings, and where tests of platforms run.

A test that takes ``platform`` runs once on each platform that is installed; on ``SAMPLED`` ones, and of the conformance
suite on ``opencl`` too, only if it is marked ``sample``, if it is marked ``full`` only on the cpu, on cuda only where
there is a GPU. ``--platforms=opencl`` names the platforms instead, a stranger's too, and runs all of them there.
``polyax_conformance.pytest_plugin`` says how gaps are declared. All else runs on the cpu.
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from polyax_conformance.pytest_plugin import DEFAULT, GAPS, platform_of

SETTINGS = {"POLYAX_CHECKS": "1", "POLYAX_HOST_FALLBACK": "error", "POLYAX_TUNE": "off"}
ROOT = Path(__file__).parents[1]
SAMPLED = ("hello_c", "wasm", "onnx")
"""Platforms that prove the contract: one that teaches, and two whose nature is another."""

os.environ.update(SETTINGS)  # before polyax is imported, which reads them
if "POLYAX_CACHE_DIR" not in os.environ:  # workers and subprocesses inherit it
    os.environ["POLYAX_CACHE_DIR"] = tempfile.mkdtemp(prefix="polyax-tests-")
    atexit.register(shutil.rmtree, os.environ["POLYAX_CACHE_DIR"], ignore_errors=True)


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


@cache  # asked for each test function
def installed_platforms() -> Sequence[str]:
    found = {e.name for e in entry_points(group="polyax")}
    names = [name for name in ("cpu", "opencl", *SAMPLED) if name in found]
    return ["reference", *names, *(["cuda"] if "cuda" in found and has_gpu() else [])]


def has_gpu() -> bool:
    from polyax.runtime.plugins.registry import registry

    registry.load("cuda")
    return registry.why_unusable("cuda") is None


def pytest_configure(config: pytest.Config) -> None:
    """Examples and tests that don't choose run on the cpu: OpenCL would be preferred, and compiles slowly."""
    import polyax
    from polyax_conformance.gaps import read_gaps
    from support import nvrtc

    config.stash[DEFAULT] = installed_platforms
    config.stash[GAPS] = {name: read_gaps(ROOT / f"plugins/{name}/gaps.toml") for name in SAMPLED}
    if "POLYAX_DEVICE" not in os.environ and "cpu" in installed_platforms():
        polyax.config.update("device", "cpu")
    nvrtc.install(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """A million objects are made here that stay: each ``gc.collect()`` of a test would look through them for 0.4 s."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = {item for item in items if is_left_to_grades(item)}
    if left_out and not config.getoption("platforms"):
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def is_left_to_grades(item: pytest.Item) -> bool:
    """What takes too long for every build; or measures."""
    where = platform_of(item)
    full, sample = item.get_closest_marker("full"), item.get_closest_marker("sample")
    sampled = where in SAMPLED or (where == "opencl" and "levels" in item.path.parts)  # it compiles slowly
    return bool(where) and ((full and where != "cpu") or (sampled and not sample) or "speed" in item.path.parts)
