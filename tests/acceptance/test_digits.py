"""The README's first example and the demo, on real images."""

from __future__ import annotations

import os
import runpy
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from support.process import finished
from support.sources import ROOT


@pytest.mark.sample
@pytest.mark.slow
def test_digits_are_learned(platform: str, capsys: pytest.CaptureFixture[str]) -> None:
    if platform == "reference":
        pytest.skip("the oracle of the others; it learns the same, slowly")
    runpy.run_path(str(ROOT / "examples/digits.py"), run_name="__main__")
    last = capsys.readouterr().out.splitlines()[-1]
    assert float(last.split()[-1].rstrip("%")) >= 97, last


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cpu", "opencl"])
def test_demo_reads_idx_files_and_draws(name: str, tmp_path: Path) -> None:
    """A folder of idx files as MNIST's, with four kinds of image that a network tells apart in two epochs."""
    rng = np.random.default_rng(0)
    for part, n in (("train", 512), ("t10k", 64)):
        labels = rng.integers(0, 4, n).astype(np.uint8)
        images = np.zeros((n, 28, 28), np.uint8)
        for image, label in zip(images, labels):
            image[7 * label : 7 * label + 7] = 200
        write_idx(tmp_path / f"{part}-images-idx3-ubyte", images)
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte", labels)
    command = [sys.executable, ROOT / "examples/demo.py", "--mnist", tmp_path, "--epochs", "2", "--out", tmp_path]
    settings = os.environ | {"POLYAX_PLATFORMS": name}
    done = finished(command, 200, settings)
    assert done.returncode == 0, done.stderr
    assert "with jit" in done.stdout and "times faster" in done.stdout
    (picture,) = tmp_path.glob("*.png")
    assert picture.read_bytes().startswith(b"\x89PNG")


def write_idx(path: Path, array: np.ndarray) -> None:
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    path.write_bytes(header + array.tobytes())
