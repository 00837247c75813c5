"""The plugins in ``examples/plugins``, as installers would leave them: each changes backends that it doesn't know."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from support import distributions
from support.process import output
from support.sources import ROOT

EXAMPLES = ROOT / "examples/plugins"
PLATFORMS = ("cpu", "opencl", "hello_c")


def install(folder: Path, example: str) -> dict[str, str]:
    """Puts an example into ``folder``; the settings with which a process finds it there."""
    project = tomllib.loads((EXAMPLES / example / "pyproject.toml").read_text())["project"]
    ((entry, module),) = project["entry-points"]["polyax"].items()
    source = (EXAMPLES / example / f"{module}.py").read_text()
    distributions.make(folder, project["name"], source, entry=entry, version=project["version"])
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


@pytest.mark.parametrize("example", sorted(p.name for p in EXAMPLES.iterdir()))
def test_examples_are_found_and_load_no_toolkit(tmp_path: Path, example: str) -> None:
    settings = install(tmp_path, example)
    page = output(
        "from polyax.runtime.telling.info import report; print(report())", POLYAX_PLATFORMS="reference", **settings
    )
    (line,) = [line for line in page.splitlines() if f"any.{example}" in line]
    assert "loaded" in line and "not loaded" not in line
    program = "import sys, polyax; polyax.devices(); print(*sys.modules)"
    loaded = set(output(program, POLYAX_PLATFORMS="reference", **settings).split())
    assert f"polyax_{example}" in loaded and "polyax_kernels.ir" not in loaded


ERF = """
    import math, numpy as np, polyax as jax
    x = np.linspace(-5, 5, 1001, dtype=np.float32)
    y = np.asarray(jax.jit(jax.lax.erf)(x))
    error = np.abs(y - [math.erf(v) for v in x]).max()
    with jax.enable_x64(True):
        exact = np.asarray(jax.lax.erf(x.astype(np.float64)))
    print(error, np.abs(exact - [math.erf(v) for v in x]).max())
"""


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_rule_for_a_backend_of_somebody_else(tmp_path: Path, name: str) -> None:
    own, _ = map(float, output(ERF, POLYAX_PLATFORMS=name).split())
    settings = install(tmp_path, "fast_erf")
    short, wide = map(float, output(ERF, POLYAX_PLATFORMS=name, **settings).split())
    assert own < 2e-7 < short < 2e-6, "the formula is in use"
    assert wide < 1e-12, "for float64 it declined"


def test_a_rule_is_no_business_of_a_backend_without_kernels(tmp_path: Path) -> None:
    settings = install(tmp_path, "fast_erf")
    error, _ = map(float, output(ERF, POLYAX_PLATFORMS="reference", **settings).split())
    assert error < 2e-7


NEIGHBOURS = """
    import numpy as np, polyax as jax, polyax.numpy as jnp
    from polyax.runtime.contract.backend import CompileOptions

    def f(x, y, z):
        return jnp.sin(x), jnp.exp(y), jnp.sum(z * z, 1), jnp.cos(jnp.sin(x))

    args = np.random.default_rng(0).random((3, 40, 50), dtype=np.float32)
    device = jax.devices()[0]
    report = device.backend.compile(jax.make_jaxpr(f)(*args), CompileOptions(device)).report()
    for got, want in zip(jax.jit(f)(*args), map(np.asarray, f(*args))):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    mine = [d.reason for d in report.decisions if d.fuser == "neighbours"]
    print(len(report.kernels), mine.count(None), *(r for r in mine if r), sep="|")
"""


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_fuser_for_a_backend_of_somebody_else(tmp_path: Path, name: str) -> None:
    settings = install(tmp_path, "neighbours") | {"POLYAX_PLATFORMS": name}
    without, merged, *_ = output(NEIGHBOURS, **settings).split("|")
    assert merged == "0", "it waits to be asked for"
    kernels, merged, *reasons = output(NEIGHBOURS, POLYAX_FUSERS="instruction,neighbours", **settings).split("|")
    assert int(merged) > 0 and int(kernels) < int(without)
    assert all(reasons)
