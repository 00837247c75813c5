"""``polyax.debug``, and what finds NaNs, turns compilation off, and looks for leaks."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from support import process

CASES = Path(__file__).with_name("debug_cases.py")

# --- printing


def printed(capsys):
    polyax.effects_barrier()
    return capsys.readouterr().out


@pytest.mark.sample
def test_print(platform, capsys):
    @polyax.jit
    def f(x):
        polyax.debug.print("x = {}, y = {y:.3f}", x, y=jnp.sin(x[1]), ordered=True)
        return x

    f(np.float32([0, 1]))
    assert printed(capsys) == "x = [0. 1.], y = 0.841\n"


def test_print_checks_its_format():
    with pytest.raises(ValueError, match=r"Unused positional arguments to .*: \[3\]"):
        polyax.debug.print("x", 3)
    with pytest.raises(ValueError, match=r"Unused keyword arguments to .*: \['y'\]"):
        polyax.debug.print("{}", 3, y=4)
    with pytest.raises(IndexError):
        polyax.debug.print("{} {}", 3)


def test_print_shows_numbers_as_the_caller_likes_them(capsys):
    with np.printoptions(precision=2):
        f = polyax.jit(lambda x: polyax.debug.print("{}", x))
        f(np.float32([1 / 3]))
    assert printed(capsys) == "[0.33]\n"
    polyax.debug.print(ordered=True)("{} {who}", 1, who="strings pass")
    assert printed(capsys) == "1 strings pass\n"


def test_print_in_everything(capsys):
    def f(x):
        polyax.debug.print("{}", x)
        return x * x

    polyax.vmap(polyax.grad(f))(np.float32([1, 2]))
    assert printed(capsys) == "1.0\n2.0\n"
    polyax.jit(lambda x: lax.map(f, x))(np.int32([3, 4]))
    assert sorted(printed(capsys).split()) == ["3", "4"]


def test_log(caplog):
    with caplog.at_level(logging.INFO, "polyax.debug"):
        polyax.jit(lambda x: polyax.debug.log("x = {}", x))(3)
        polyax.effects_barrier()
    assert [r.message for r in caplog.records if r.name == "polyax.debug"] == ["x = 3"]


def test_what_is_printed_before_the_end_of_a_process_is_seen():
    assert (
        process.output("""
        import polyax, polyax.numpy as jnp
        from polyax import lax

        def f(x):
            x = lax.fori_loop(0, 100, lambda _, v: jnp.sin(v @ v), x)
            polyax.debug.print("at the end {}", x.shape)

        polyax.jit(f)(jnp.ones((200, 200)))
        """)
        == "at the end (200, 200)"
    )


def test_breakpoint():
    answers = io.StringIO()

    @polyax.jit
    def f(x):
        twice = 2 * x
        polyax.debug.breakpoint(stdin=io.StringIO("p twice\np nothing\nu\nbt\nc\n"), stdout=answers)
        return twice

    f(np.float32(4))
    polyax.effects_barrier()
    text = answers.getvalue()
    assert "8.0" in text and "NameError" in text and f"{__file__}:" in text and "(f)" in text


# --- not a number


def log_of(x):
    return jnp.log(x - 2)


def search(f, *args, what="nan"):
    """The text of the error that the search for NaNs raises."""
    with (
        polyax.debug_nans(what == "nan"),
        polyax.debug_infs(what == "inf"),
        pytest.raises(FloatingPointError) as caught,
    ):
        polyax.tree_util.tree_map(lambda x: x.block_until_ready(), f(*args))
    return str(caught.value)


def line_of(function):
    return f"{__file__}:{function.__code__.co_firstlineno + 1}"


@pytest.mark.sample
def test_a_nan_is_found_where_it_arises(platform):
    text = search(polyax.jit(lambda x: log_of(x) + 1), np.float32([1, 3]))
    assert "invalid value (nan) encountered in log" in text and line_of(log_of) in text
    assert "inf" in search(polyax.jit(lambda x: log_of(x) * 2), np.float32(2), what="inf")


def test_a_nan_that_a_branch_gives_is_found_in_the_conditional(platform):
    branches = polyax.jit(lambda x: lax.cond(x == 1, lambda: np.float32(np.nan), lambda: np.float32(2)))
    assert "encountered in cond, asked for at" in search(branches, np.float32(1))


def test_within_loops_the_iteration_is_named():
    def step(c, x):
        return c + log_of(x), c

    xs = np.float32([5, 4, 3, 1, 3])
    text = search(lambda: lax.scan(step, 0.0, xs))
    assert "in iteration 3 of scan" in text and line_of(log_of) in text
    text = search(lambda: lax.while_loop(lambda x: x > -3, lambda x: log_of(x) * 0 + x - 1, 4.5))
    assert "in iteration 3 of while" in text and line_of(log_of) in text
    text = search(polyax.jit(lambda x: lax.cond(x < 2, log_of, lambda x: x, x)), 1.0)
    assert line_of(log_of) in text


def test_eager_and_backwards():
    assert line_of(log_of) in search(log_of, jnp.float32(1))

    def root(x):
        return jnp.sqrt(x) * 0

    text = search(polyax.jit(polyax.grad(root)), 0.0)
    assert "invalid value (nan)" in text and line_of(root) in text
    text = search(polyax.jit(polyax.grad(lambda x: lax.scan(lambda c, _: (root(c), None), x, None, 3)[0])), 0.0)
    assert "of scan" in text and line_of(root) in text


def test_a_program_may_hand_through_what_is_not_finite():
    assert "in a result of type float32[]" in search(polyax.jit(lambda x: x), np.float32("nan"))


def test_finite_results_pass():
    with polyax.debug_nans(True), polyax.debug_infs(True):
        assert float(polyax.jit(lambda x: jnp.where(x > 0, jnp.log(x), 0.0))(0.0)) == 0  # inside is nobody's business


def test_on_several_devices():
    process.cases(CASES, POLYAX_DEVICE="cpu", POLYAX_NUM_CPU_DEVICES="4")


# --- without compilation


def test_control_flow_without_jit_is_python():
    seen = []

    def note(x):
        seen.append(float(x))  # a tracer has no value
        return x + 1

    with polyax.disable_jit():
        polyax.jit(note)(jnp.float32(0))
        lax.cond(True, note, note, jnp.float32(1))
        lax.switch(1, [note, note], jnp.float32(2))
        lax.while_loop(lambda x: x < 5, note, jnp.float32(3))
        lax.scan(lambda c, x: (note(c), x), jnp.float32(5), np.zeros(2))
        lax.fori_loop(0, 1, lambda _, c: note(c), jnp.float32(7))
    assert seen == [0, 1, 2, 3, 4, 5, 6, 7]


# --- leaks


def test_a_tracer_that_outlives_its_function_is_found():
    kept = []

    def leaky(x):
        kept.append(x + 1)
        return x

    with polyax.checking_leaks(), pytest.raises(Exception, match=r"(?s)Leaked.*leaky.*float32\[\]"):
        polyax.jit(leaky)(1.0)
    kept.clear()
    with polyax.checking_leaks():
        assert float(polyax.jit(lambda x: lax.scan(lambda c, y: (c + y, c), x, jnp.ones(3))[0])(1.0)) == 4
        assert float(polyax.grad(polyax.jit(lambda x: jnp.sin(x) * x))(0.0)) == 0
