"""Plugins of strangers: each way in which one can fail leaves the others at work, and is explained."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from support import distributions
from support.process import output, run
from support.sources import ROOT

OURS = ",".join(
    f"polyax-{name}"
    for name in ("cpu", "opencl", "cuda", "hello-c", "wasm", "fusion", "onnx", "inspect", "mpi", "conformance")
)
QUIET = "import warnings; warnings.simplefilter('ignore')\n"
BROKEN = "raise OSError('libfoo.so: cannot open shared object file')"
MISSPELT = """
    from polyax.runtime.contract.hooks import hookimpl

    @hookimpl
    def polyax_backend():
        return []
"""
TEXTLESS = """
    class Odd(Exception):
        def __str__(self):
            return 1 / 0

    raise Odd
"""
SLOW = (
    "import time\ntime.sleep(3)\n"
    + "from polyax.runtime.contract.hooks import hookimpl\n@hookimpl\ndef polyax_fusers(backend): pass"
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path


def environment(site: Path, **settings: str) -> dict[str, str]:
    """Settings with which a process finds the distributions in ``site`` and none of this repository but the core."""
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": path, "POLYAX_DISABLE_PLUGINS": OURS, **settings}


def info(site: Path, **settings: str) -> str:
    return output("from polyax.runtime.telling.info import report; print(report())", **environment(site, **settings))


def test_backend_of_a_stranger_is_found_and_preferred(site: Path) -> None:
    distributions.make(site, "polyax-fake", distributions.backend("fake"), entry="fake")
    program = "from polyax.runtime.arrays.devices import devices; print(devices())"
    assert output(program, **environment(site)) == "[FakeDevice(id=0)]"
    assert output(program, **environment(site, POLYAX_PLATFORMS="reference")).startswith("[ReferenceDevice")


@pytest.mark.parametrize(
    "source, cause",
    [
        (BROKEN, "OSError while importing: libfoo.so: cannot open shared object file"),
        (MISSPELT, "unknown hook 'polyax_backend'; did you mean 'polyax_backends'?"),
        ("x = 1", "it implements none of the hooks polyax_backends"),
        ("def polyax_backends(): return []", "polyax_backends lacks the mark @polyax.hookimpl"),
        (
            distributions.backend("fake", requires=">=7"),
            "backend 'fake' was written for versions >=7 of the contract of plugins, and this polyax has version 1.0",
        ),
        (distributions.backend("other"), "entry point 'fake' brings backend 'other'"),
        (MISSPELT.replace("_backend()", "_lowerings(bakend)"), "'bakend'"),
        (
            MISSPELT.replace("_backend()", "_backends()").replace("[]", "[3]"),
            "polyax_backends gave 3, not a BackendSpec",
        ),
        (
            MISSPELT.replace("_backend()", "_backends()").replace("[]", "1 / 0"),
            "ZeroDivisionError while examining it: division by zero",
        ),
        ("raise SystemExit('no license')", "SystemExit while importing: no license"),
        ("raise GeneratorExit", "GeneratorExit while importing"),
        (TEXTLESS, "Odd while importing: (its text can't be had: its __str__ raised ZeroDivisionError)"),
        (
            "import polyax\npolyax.devices()",
            "it computes or asks for devices while importing, before it is ready: do so in Backend.opened, or later",
        ),
    ],
    ids=[
        *("broken", "misspelt", "no-hook", "unmarked", "api", "name", "argument", "no-spec", "raises"),
        *("exits", "base-exception", "no-text", "computes"),
    ],
)
def test_failing_plugin_is_explained_and_harms_no_other(site: Path, source: str, cause: str) -> None:
    distributions.make(site, "polyax-bad", source, entry="fake", version="1.2.3")
    distributions.make(site, "polyax-good", distributions.backend("good"), entry="good")
    done = run("from polyax.runtime.arrays.devices import devices; print(devices()); devices()", **environment(site))
    assert "GoodDevice" in done.stdout, done.stderr
    assert done.stderr.count("UserWarning") == 1, "warned once"
    assert "plugin 'fake' of polyax-bad 1.2.3 can't be used" in done.stderr
    assert cause in done.stderr

    page = info(site)
    assert cause in page
    assert "polyax-bad 1.2.3" in page
    assert "remedy: update or uninstall polyax-bad, or leave it out with POLYAX_DISABLE_PLUGINS=polyax-bad" in page

    asked = run(QUIET + "from polyax.runtime.arrays.devices import devices; devices('fake')", **environment(site))
    assert asked.returncode == 1
    assert "Unable to initialize backend 'fake': " in asked.stderr
    assert cause in asked.stderr


def test_broken_plugin_asked_for_by_name_tells_its_traceback(site: Path) -> None:
    distributions.make(site, "polyax-bad", BROKEN, entry="fake")
    done = run(
        QUIET + "import polyax.runtime.arrays.devices as d; d.devices()", **environment(site, POLYAX_PLATFORMS="fake")
    )
    assert "polyax_bad.py" in done.stderr
    assert "The plugin failed with:" in done.stderr


def test_slow_plugin_is_imported_only_if_needed(site: Path) -> None:
    distributions.make(site, "polyax-slow", SLOW, entry="slow.extra")
    distributions.make(site, "polyax-fake", distributions.backend("fake"), entry="fake")
    program = (
        "import sys; from polyax.runtime.arrays.devices import devices; devices(); print('polyax_slow' in sys.modules)"
    )
    assert output(program, **environment(site, POLYAX_PLATFORMS="fake")) == "False"
    page = info(site)
    assert any("slow.extra" in line and "loaded" in line and "s, slow" in line for line in page.splitlines())
    assert any(
        "slow.extra" in line and "not loaded" in line for line in info(site, POLYAX_PLATFORMS="fake").splitlines()
    )


@pytest.mark.parametrize(
    "settings, cause",
    [
        ({"POLYAX_DISABLE_PLUGINS": f"other,Polyax_Fake,{OURS}"}, "POLYAX_DISABLE_PLUGINS="),
        ({"POLYAX_PLUGINS": "polyax-good"}, "POLYAX_PLUGINS=polyax-good doesn't name polyax-fake"),
    ],
    ids=["disabled", "not-chosen"],
)
def test_blocked_plugin_is_not_imported(site: Path, settings: dict[str, str], cause: str) -> None:
    distributions.make(site, "polyax-fake", distributions.backend("fake"), entry="fake")
    distributions.make(site, "polyax-good", distributions.backend("good", priority=1), entry="good")
    program = QUIET + "import sys, polyax; print(polyax.devices(), 'polyax_fake' in sys.modules)"
    assert output(program, **environment(site, **settings)) == "[GoodDevice(id=0)] False"
    asked = run(
        QUIET + "from polyax.runtime.arrays.devices import devices; devices('fake')", **environment(site, **settings)
    )
    assert f"Unable to initialize backend 'fake': plugin 'fake' of polyax-fake 1.0: {cause}" in asked.stderr


def test_two_backends_of_one_name(site: Path) -> None:
    distributions.make(site, "polyax-one", distributions.backend("fake"), entry="fake")
    distributions.make(site, "polyax-two", distributions.backend("fake"), entry="fake")
    done = run("from polyax.runtime.arrays.devices import devices; devices('fake')", **environment(site))
    assert "two plugins bring a backend named 'fake'" in done.stderr
    assert "polyax-one 1.0" in done.stderr and "polyax-two 1.0" in done.stderr
    assert "two plugins bring a backend named 'fake'" in info(site)


def test_unusable_platform_is_refused_if_named_and_passed_over_if_not(site: Path) -> None:
    distributions.make(
        site, "polyax-fake", distributions.backend("fake", reason="no fake device is plugged in"), entry="fake"
    )
    program = "from polyax.runtime.arrays.devices import devices; print(devices())"
    done = run(program, **environment(site))
    assert "ReferenceDevice" in done.stdout
    assert 'pip install "polyax[cpu]"' in done.stderr and done.stderr.count("UserWarning") == 1
    assert "(fake: no fake device is plugged in)" in done.stderr
    for platforms in ("fake", "reference,fake"):
        done = run(program, **environment(site, POLYAX_PLATFORMS=platforms))
        assert "RuntimeError: Unable to initialize backend 'fake': no fake device is plugged in" in done.stderr


def test_backend_that_fails_to_open_is_passed_over_with_a_warning(site: Path) -> None:
    source = distributions.backend("fake").replace("open=FakeBackend", "open=lambda: 1 / 0")
    distributions.make(site, "polyax-fake", source, entry="fake")
    done = run("from polyax.runtime.arrays.devices import devices; print(devices())", **environment(site))
    assert "ReferenceDevice" in done.stdout
    assert "ZeroDivisionError while opening 'fake': division by zero" in done.stderr


def test_info_shows_what_a_plugin_says_of_its_platform(site: Path) -> None:
    source = distributions.backend("fake").replace("priority=", "note='for rainy days only', priority=")
    distributions.make(site, "polyax-fake", source, entry="fake")
    assert "note: for rainy days only" in info(site)


def test_cuda_is_called_unverified_until_a_gpu_has_run_it() -> None:
    page = output("from polyax.runtime.telling.info import report; print(report())", POLYAX_PLATFORMS="")
    assert "note: unverified" in page
    assert "unverified" in (ROOT / "README.md").read_text()


def test_trace_of_loading(site: Path) -> None:
    distributions.make(site, "polyax-fake", distributions.backend("fake"), entry="fake")
    done = run(
        "from polyax.runtime.arrays.devices import devices; devices()", **environment(site, POLYAX_TRACE_PLUGINS="1")
    )
    steps = [line for line in done.stderr.splitlines() if line.startswith("polyax plugins: ")]
    assert any("plugin 'fake' of polyax-fake 1.0: importing" in step for step in steps)


def test_unknown_names_in_settings_are_told(site: Path) -> None:
    done = run(
        "from polyax.runtime.arrays.devices import devices; devices()",
        **environment(site, POLYAX_PLUGINS="polyax-typo"),
    )
    assert "names 'polyax-typo'" in done.stderr


def test_info_lists_settings_with_their_source(site: Path) -> None:
    rows: dict[str, Any] = {
        line.split()[0]: line for line in info(site, POLYAX_NUM_CPU_DEVICES="3").splitlines() if line
    }
    assert "POLYAX_NUM_CPU_DEVICES" in rows["num_cpu_devices"] and " 3 " in rows["num_cpu_devices"]
    assert "default" in rows["enable_x64"]


def test_module_as_a_command(site: Path) -> None:
    program = """
        import sys, runpy
        sys.argv = ["polyax", "{}"] + {}
        runpy.run_module("polyax", run_name="__main__")
    """
    assert "Platforms" in run(program.format("info", []), **environment(site)).stdout
    refused = run(program.format("check", ["cpu"]), **environment(site))
    assert refused.returncode == 2 and "pip install polyax-conformance" in refused.stderr
