"""The README's first example and the demo, on real images."""

from __future__ import annotations

import os
import re
import runpy
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import polyax as jax
from support.process import finished
from support.sources import ROOT

EXAMPLE = str(ROOT / "examples/digits.py")
LOSSES = [0.1057, 0.0513, 0.0331]
"""After each of the first epochs, on the cpu."""


@pytest.mark.slow
def test_digits_are_learned(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(EXAMPLE, run_name="__main__")
    *_, last = lines = capsys.readouterr().out.splitlines()
    assert float(last.split()[-1].rstrip("%")) >= 97, last
    assert [float(re.findall(r"loss (\S+),", line)[0]) for line in lines[:3]] == pytest.approx(LOSSES, rel=0.01)


@pytest.mark.sample
@pytest.mark.slow
def test_every_platform_learns_the_same(platform: str) -> None:
    """Later epochs run the programs of the first."""
    example = SimpleNamespace(**runpy.run_path(EXAMPLE))
    (images, _), (labels, _) = example.load()
    params, step = example.init([64, 512, 512, 10], jax.random.PRNGKey(0)), jax.jit(example.update)
    for wanted in LOSSES:
        for i in range(0, len(images), 128):
            params, value = step(params, images[i : i + 128], jax.nn.one_hot(labels[i : i + 128], 10))
        assert float(value) == pytest.approx(wanted, rel=0.01)
    assert example.accuracy(params, images, labels) > 0.7


@pytest.mark.slow
def test_demo_reads_idx_files_and_draws(tmp_path: Path) -> None:
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
    settings = os.environ | {"POLYAX_PLATFORMS": "cpu"}
    done = finished(command, 200, settings)
    assert done.returncode == 0, done.stderr
    assert "with jit" in done.stdout and "times faster" in done.stdout
    (picture,) = tmp_path.glob("*.png")
    assert picture.read_bytes().startswith(b"\x89PNG")


def write_idx(path: Path, array: np.ndarray) -> None:
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    path.write_bytes(header + array.tobytes())
