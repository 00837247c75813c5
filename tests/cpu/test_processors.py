"""Which processor code is made for: this one, one of the usual, or meanwhile another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polyax_cpu import compiler, processors
from support.process import output, run

TEXT = "define i32 @seven() {\n  ret i32 7\n}\n"
BEST, USUAL = processors.TARGETS
SINE = """
import numpy as np, polyax.numpy as jnp
from polyax_cpu import processors
x = np.linspace(-9, 9, 999, dtype=np.float32)
np.testing.assert_allclose(jnp.sin(x), np.sin(x.astype(float)), atol=1e-7)
print(processors.host().cpu, processors.host().vector_bits)
"""


def test_code_runs_where_all_its_features_are() -> None:
    assert processors.runs(BEST, BEST) and processors.runs(USUAL, BEST) and not processors.runs(BEST, USUAL)
    assert not processors.runs(USUAL, replace(BEST, triple="aarch64-unknown-linux-gnu"))
    assert (BEST.vector_bits, BEST.has_masks, BEST.has_ranges) == (512, True, True)
    assert (USUAL.vector_bits, USUAL.has_masks) == (256, False)


def test_other_processors_are_made_for_meanwhile() -> None:
    before = processors.host()
    for target in processors.TARGETS:
        with processors.made_for(target):
            assert processors.host() is target
            assert compiler.compile(TEXT, 1).startswith(b"\x7fELF")
    assert processors.host() is before


@pytest.mark.skipif(not processors.runs(USUAL, processors.this()), reason="an older processor")
def test_code_is_made_for_the_processors_that_are_asked_for() -> None:
    assert output(SINE, POLYAX_PLATFORMS="cpu", POLYAX_CPU_TARGET="x86-64-v3") == "x86-64-v3 256"


def test_unknown_processors_are_named() -> None:
    done = run(SINE, POLYAX_PLATFORMS="cpu", POLYAX_CPU_TARGET="pentium")
    assert "POLYAX_CPU_TARGET='pentium' is none of x86-64-v4, x86-64-v3" in done.stderr


def test_what_a_processor_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "this", lambda: USUAL)
    monkeypatch.setattr(processors, "cpu_target", lambda: BEST.cpu)
    with pytest.raises(ValueError, match=r"x86-64-v4: this processor \(x86-64-v3\) lacks \+avx512bw, \+avx512cd"):
        processors._wanted.__wrapped__()
