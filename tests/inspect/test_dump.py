"""``POLYAX_DUMP``: a folder per program with all that the compiler made of it, private to the user."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from polyax_inspect.dump import new_folder
from support.process import output, run

PROGRAM = """
    import polyax as jax, polyax.numpy as jnp, numpy as np
    print(jax.jit(jax.nn.softmax)(np.ones((4, 8), np.float32)).shape)
"""


@pytest.fixture(scope="module")
def dumped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dump") / "new"
    output(PROGRAM, POLYAX_DUMP=str(directory), POLYAX_PLATFORMS="cpu")
    return directory


def test_a_folder_with_everything(dumped: Path) -> None:
    (folder,) = dumped.glob("*-softmax")
    names = {p.name for p in folder.iterdir()}
    assert names >= {"jaxpr.txt", "explain.txt", "timings.json", "decisions.json", "drawing.html"}
    passes = sorted(n for n in names if n.startswith("pass-"))
    assert passes[:2] == ["pass-00-lower.txt", "pass-01-instruction.txt"] and passes[-1].endswith(
        "canonical_kernels.txt"
    )
    assert any(n.startswith("kernel-000-") for n in names)


def test_contents(dumped: Path) -> None:
    (folder,) = dumped.glob("*-softmax")
    assert "reduce_max" in (folder / "jaxpr.txt").read_text()
    lowered, fused = (next(folder.glob(f"pass-{n:02d}-*")).read_text() for n in (0, 1))
    assert lowered.count(" = kernel ") > fused.count(" = kernel ") > 0
    timings = json.loads((folder / "timings.json").read_text())
    assert set(timings["phases"]) >= {"lower", "instruction", "plan", "emit"}
    assert timings["compile"] >= sum(timings["phases"].values()) * 0.99
    decisions = json.loads((folder / "decisions.json").read_text())
    assert {"fuser", "producer", "consumer", "reason"} <= set(decisions[0])
    assert (
        "kernel" in next(folder.glob("pass-*-plan.txt")).read_text() and "<svg" in (folder / "drawing.html").read_text()
    )


def test_only_the_user_can_read_it(dumped: Path) -> None:
    paths = [dumped, *dumped.rglob("*")]
    assert all(stat.S_IMODE(p.stat().st_mode) & 0o077 == 0 for p in paths)


def test_numbers_go_on(tmp_path: Path) -> None:
    names = [new_folder(tmp_path, name).name for name in ("f", "<lambda>", "a/../b")]
    assert names == ["0000-f", "0001-lambda", "0002-a_.._b"]


def test_without_the_plugin_there_is_a_warning(tmp_path: Path) -> None:
    settings = {"POLYAX_DUMP": str(tmp_path), "POLYAX_DISABLE_PLUGINS": "polyax-inspect"}
    done = run(PROGRAM, POLYAX_PLATFORMS="reference", **settings)
    assert done.returncode == 0 and not list(tmp_path.iterdir())
    assert "POLYAX_DUMP is set, and nothing is written" in done.stderr and "pip install polyax-inspect" in done.stderr


def test_a_directory_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run(PROGRAM, POLYAX_PLATFORMS="reference", POLYAX_DUMP=str(tmp_path / "file"))
    assert done.returncode == 0 and "(4, 8)" in done.stdout and str(tmp_path / "file") in done.stderr
