"""What a stranger's plugin can do to somebody else's backend; in processes of their own, as nothing is undone."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from support import distributions
from support.process import finished, output
from support.sources import ROOT

FASTER = """
    import numpy as np
    from polyax.ops.elementwise import sin_p
    from polyax.runtime.contract.hooks import hookimpl
    from polyax_kernels.lower.lowering import Call

    def run(ctx, outs, args, **params):
        outs[0][...] = 1000 * args[0]

    @hookimpl
    def polyax_lowerings(backend):
        why_not = lambda avals, params: "only for vectors" if len(avals[0].shape) != 1 else None
        return {sin_p: Call(run, why_not=why_not)}
"""


@pytest.mark.parametrize("entry, seen", [("hello_c.faster", True), ("any.faster", True), ("other.faster", False)])
def test_lowering_for_a_backend_of_somebody_else(tmp_path: Path, entry: str, seen: bool) -> None:
    distributions.make(tmp_path, "polyax-faster", FASTER, entry=entry)
    program = """
        import polyax as jax, polyax.numpy as jnp
        vector, matrix = jnp.ones(2), jnp.ones((2, 2))
        print(jnp.sin(vector)[0] > 100, jax.jit(jnp.sin)(vector)[0] > 100, jnp.sin(matrix)[0, 0] > 100)
    """
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    shown = output(program, PYTHONPATH=path, POLYAX_PLATFORMS="hello_c")
    assert shown == f"{seen} {seen} False", "a rule that declines leaves the shared one in place"


def test_threads_that_ask_for_devices_at_once(tmp_path: Path) -> None:
    source = "import time; time.sleep(0.3); print('imported')\n" + distributions.textwrap.dedent(
        distributions.backend("fake")
    )
    distributions.make(tmp_path, "polyax-fake", source, entry="fake")
    program = """
        import threading
        from polyax.runtime.arrays.devices import devices
        found = []
        threads = [threading.Thread(target=lambda: found.append(devices("fake")[0])) for _ in range(8)]
        [t.start() for t in threads], [t.join() for t in threads]
        print(len(found), len(set(found)))
    """
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    assert output(program, PYTHONPATH=path).split("\n") == ["imported", "8 1"]


def test_the_suite_of_this_repository_runs_on_a_platform_of_a_stranger(tmp_path: Path) -> None:
    distributions.make(tmp_path, "polyax-fake", distributions.backend("fake"), entry="fake")
    file = ROOT / "plugins/conformance/src/polyax_conformance/levels/primitives/test_values.py"
    command = [sys.executable, "-m", "pytest", "-rA", file, "--platforms=fake", "-k", "concatenate"]
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = finished(command, 300, os.environ | {"PYTHONPATH": path}, ROOT)
    assert set(re.findall(r"^PASSED .*\[(\w+)-concatenate\]$", done.stdout, re.MULTILINE)) == {"fake"}, done.stdout
