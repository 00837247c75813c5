"""Progress: bars where a block asks for them, and scans that count without computing anything else."""

from __future__ import annotations

import builtins
import io
import time

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.control.flow.parts import scan_in_parts
from polyax.runtime.debugging import progress as board
from polyax.runtime.running import compiling
from support.process import output

XS = np.arange(1, 24, dtype=np.float32)


def body(carry, x):
    carry = 0.9 * carry + jnp.sin(x)
    return carry, carry * x


def ran(file: io.StringIO, **options) -> str:
    with jax.debug.progress(shown=True, file=file, **options):
        jax.jit(lambda xs: jax.debug.scan(body, 0.0, xs, name="filter", parts=5))(XS)
    return file.getvalue()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("parts", [1, 4, 23, 100])
def test_scans_in_parts_give_what_scans_give(reverse: bool, parts: int) -> None:
    told = jax.debug.scan(body, 0.0, XS, reverse=reverse, parts=parts)
    jax.tree.map(np.testing.assert_array_equal, told, jax.lax.scan(body, 0.0, XS, reverse=reverse))


@pytest.mark.parametrize("parts", [1, 3, 12, 22, 100])
def test_no_more_parts_tell_than_were_asked_for(parts: int) -> None:
    counts: list[int] = []
    scan_in_parts(body, 0.0, XS, len(XS), False, parts, lambda turns: jax.debug.callback(lambda: counts.append(turns)))
    jax.effects_barrier()
    assert sum(counts) == len(XS) and len(counts) <= parts


def test_they_have_derivatives_and_batches() -> None:
    total = lambda scan: lambda a: scan(body, a, XS)[1].sum()
    assert jnp.allclose(jax.grad(total(jax.debug.scan))(0.5), jax.grad(total(jax.lax.scan))(0.5))
    batch = jnp.arange(3.0)
    assert jnp.allclose(jax.vmap(total(jax.debug.scan))(batch), jax.vmap(total(jax.lax.scan))(batch))


def test_scans_without_slices_and_without_turns() -> None:
    count = lambda c, _: (c + 1, None)
    assert jax.debug.scan(count, 0, length=7, parts=3) == (7, None)
    last, ys = jax.debug.scan(body, 2.0, XS[:0])
    assert last == 2.0 and ys.shape == (0,)


def test_a_block_counts_all_turns() -> None:
    assert "filter: 100%" in (text := ran(io.StringIO())) and "23/23" in text


def test_each_run_has_a_bar() -> None:
    f, file = jax.jit(lambda xs: jax.debug.scan(body, 0.0, xs, name="filter", parts=5)), io.StringIO()
    with jax.debug.progress(shown=True, file=file):
        for _ in range(3):
            jax.block_until_ready(f(XS))
    assert file.getvalue().count("23/23") == 3


def test_compilations_that_take_long_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    before = compiling.build

    def slow(*args, **kwargs):
        time.sleep(0.3)
        return before(*args, **kwargs)

    monkeypatch.setattr(compiling, "build", slow)
    with jax.debug.progress(shown=True, after=0.05, file=(file := io.StringIO())):
        jax.jit(lambda x: x * 3 + 1)(1.0)
    assert "compiling <lambda> for cpu:0" in file.getvalue()


def test_nothing_is_shown_outside_of_blocks_and_in_scripts_without_a_terminal() -> None:
    program = """
    import sys
    import polyax as jax

    sys.stderr = sys.stdout
    with jax.debug.progress(after=0):
        print(jax.debug.scan(lambda c, _: (c + 1, None), 0, length=9)[0])
    """
    assert output(program) == "9"
    assert board.Shown.board is None


def test_without_tqdm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    before = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("tqdm"):
            raise ImportError(name)
        return before(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="pip install tqdm"), jax.debug.progress(shown=True):
        pass


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(ValueError, match="at least one part, got parts=0"):
        jax.debug.scan(body, 0.0, XS, parts=0)
    with pytest.raises(ValueError, match="scan got"):
        jax.debug.scan(body, 0.0, (XS, XS[1:]))


def test_an_error_ends_the_block() -> None:
    with pytest.raises(ZeroDivisionError), jax.debug.progress(shown=True, file=io.StringIO()):
        1 / 0  # noqa: B018
    assert board.Shown.board is None
