"""Object code in the wheel of the CPU backend: what a first process calls isn't compiled, and gives the same bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polyax_cpu import processors
from support.process import run
from support.sources import ROOT

pytest.importorskip("wheel", reason="wheels are written by the package wheel")
HERE = [target for target in processors.TARGETS if processors.runs(target, processors.host())]

SHIP = """
import sys
sys.path.insert(0, {release!r})
from pathlib import Path
import ship
from polyax_cpu import processors, shipped
target = next(t for t in processors.TARGETS if t.cpu == {cpu!r})
shipped.write(Path({folder!r}), target, ship.made_for(target, ship.needed()))
"""
FIRST = """
from pathlib import Path
from polyax_cpu import compiler, shipped
shipped.FOLDER = Path({folder!r})
count, compile = [], compiler.compile
compiler.compile = lambda text, *how: count.append(text) or compile(text, *how)
import numpy as np
import polyax as jax, polyax.numpy as jnp
x = jnp.linspace(0.1, 90, 600).reshape(20, 30)
results = [jnp.sin(x), jnp.log(x), x**2.0, x / 3, jnp.exp(-x), x.at[2].add(1), jax.nn.gelu(x), x[3], x.T, x.astype(int)]
print(*(np.asarray(y).tobytes().hex() for y in results))
print(len(count))
"""


def process(program: str, **values: str) -> list[str]:
    """The lines that it prints."""
    done = run(program.format(**values), POLYAX_PLATFORMS="cpu", POLYAX_COMPILATION_CACHE="0")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_first_process_compiles_nothing_and_gets_the_same_bits(tmp_path: Path) -> None:
    if not HERE:
        pytest.skip("code is shipped for other processors alone")
    process(SHIP, release=str(ROOT / "release"), cpu=HERE[0].cpu, folder=str(tmp_path))
    got, compiled = process(FIRST, folder=str(tmp_path))
    expected, others = process(FIRST, folder=str(tmp_path / "empty"))
    assert got == expected
    assert int(compiled) == 0 < int(others)


def test_files_are_put_into_a_wheel_and_its_record(script: Callable[[str], Any], tmp_path: Path) -> None:
    ship, wheelfile = script("ship"), pytest.importorskip("wheel.wheelfile")
    path, folder = tmp_path / "polyax_cpu-1-py3-none-any.whl", tmp_path / "made"
    with wheelfile.WheelFile(path, "w") as wheel:
        wheel.writestr("polyax_cpu/__init__.py", "")
        wheel.writestr("polyax_cpu-1.dist-info/WHEEL", "")
    folder.mkdir()
    (folder / "x86").write_bytes(b"code")
    ship.put(path, folder)
    ship.put(path, folder)  # again, as before
    with wheelfile.WheelFile(path) as wheel:
        assert wheel.read("polyax_cpu/objects/x86") == b"code"  # held against the record
        assert sorted(wheel.namelist()) == sorted(
            ["polyax_cpu/__init__.py", "polyax_cpu/objects/x86"]
            + [f"polyax_cpu-1.dist-info/{name}" for name in ("WHEEL", "RECORD")]
        )
