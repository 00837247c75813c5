"""A short soak, and what makes one fail."""

from __future__ import annotations

import pytest
from soak import run
from soak.jobs import JOBS

import polyax as jax
from support.process import output
from support.sources import ROOT


def test_eight_threads_compute_what_they_compute_alone() -> None:
    printed = output(
        "from soak.run import main; print(main(['--seconds', '10', '--platforms', 'cpu,reference']))",
        PYTHONPATH=str(ROOT / "tests"),
        POLYAX_PLATFORMS="cpu,reference",
        timeout=600,
    )
    assert printed.splitlines()[-1] == "0", printed


def test_other_bits_and_errors_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    count = iter(range(10**9))

    def fails(seed: int, device: object) -> object:
        if next(count) < run.SEEDS:
            return jax.numpy.zeros(())
        return 1 / 0 if seed % 2 else jax.numpy.ones(())

    monkeypatch.setattr(run, "JOBS", {"fails": fails})
    soak = run.Soak(["cpu"])
    soak.run(0.2)
    told = "\n".join(soak.failures)
    assert "ZeroDivisionError" in told and "has other bits than alone" in told and len(soak.failures) == soak.ran


def test_arrays_left_over_are_counted() -> None:
    before = run.left_over()
    kept = JOBS["elementwise"](0, jax.devices("cpu")[0])
    assert run.left_over() == before + 1
    del kept
    assert run.left_over() == before


def test_growth_is_of_the_second_half() -> None:
    soak = run.Soak([])
    soak.memory = [(float(n), 100 if n < 50 else 100 + n) for n in range(100)]
    assert soak.growth() == pytest.approx(175 / 150 - 1)
