"""``explain``: a table of what a function is compiled to, for any function that can be jitted."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.__main__ import main
from polyax.runtime.contract.report import BufferReport, Decision, KernelReport, ProgramReport, Report
from polyax.runtime.telling.explanation import MOST, Explanation
from support.process import run

X = jax.ShapeDtypeStruct((8, 16), "float32")


@pytest.mark.sample
def test_it_prints_and_returns_the_table(platform: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = jax.explain(lambda x: jnp.sin(x) * 2 + x)(X)
    printed = capsys.readouterr().out
    assert printed == f"{told}\n" and repr(told) == str(told)
    assert "kernels" in printed and "sin" in printed and "float32[8,16]" in printed and "before fusion" in printed
    assert told.report.backend == platform and str(told.device).startswith(platform)


def test_interactive_sessions_show_the_returned_object(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.ps1", ">>> ", raising=False)
    told = jax.explain(jnp.sin)(X)
    assert capsys.readouterr().out == "" and "sin" in repr(told)


class Model:
    scale = 3

    @functools.partial(jax.jit, static_argnums=(0, 2))
    def method(self, x: Any, n: int) -> Any:
        return x * self.scale**n


@functools.partial(jax.jit, static_argnames="n")
def power(x: Any, n: int) -> Any:
    return x**n


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "plain": (lambda x: x + 1, (X,), {}),
    "jitted, static by name": (power, (X,), {"n": 3}),
    "a method, jitted": (Model().method, (X, 2), {}),
    "pytrees": (lambda d: d["a"] * d["b"][0], ({"a": X, "b": [X]},), {}),
    "a gradient of a jitted function": (jax.grad(lambda x: power(x, 2).sum()), (X,), {}),
    "numbers and arrays": (lambda x, y: x * y, (2.0, jnp.ones(3)), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_any_function_that_can_be_jitted(case: str) -> None:
    fun, args, kwargs = CASES[case]
    told = jax.explain(fun)(*args, **kwargs)
    assert told.report.kernels and told.report.buffers


def test_options_are_those_of_jit() -> None:
    told = jax.explain(lambda x, n: x * n, static_argnums=1, donate_argnums=0, device=jax.devices("reference")[0])(X, 2)
    assert told.report.backend == "reference" and len(told.jaxpr.jaxpr.invars) == 1


def test_nothing_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    x = jnp.ones(3)
    jax.explain(lambda x: x + 1, donate_argnums=0)(x)
    assert float(x.sum()) == 3 and not x.is_deleted()


def test_wrong_functions_are_errors() -> None:
    with pytest.raises(TypeError, match="callable"):
        jax.explain(3)  # pyright: ignore
    with pytest.raises(TypeError, match="make it static"):
        jax.explain(lambda x: x)("text")


def explanation(report: Report) -> Explanation:
    closed = jax.make_jaxpr(lambda x: x)(1.0)
    return Explanation("f", jax.devices("reference")[0], closed, report)


def test_a_reason_is_told_once() -> None:
    decisions = [Decision("fuser", f"p{n}", "q", "it is a result of the program") for n in range(100)]
    text = explanation(Report("toy", decisions=decisions)).text(80)
    assert text.count("it is a result") == 1 and "100×" in text and "p0 → q" in text and "p50" not in text


def test_whose_rules_run_steps_is_told_unless_all_are_shared() -> None:
    shared = KernelReport("k", ("sin",), 4, 1, rules=("shared",))
    other = KernelReport("k", ("add", "mul"), 4, 1, rules=("shared", "decomposition of f"))
    loop = KernelReport("l", ("scan",), 4, 1, kind="loop", programs=(ProgramReport("body", [other], []),), turns=3)
    text = explanation(Report("toy", [shared, loop])).text(100)
    assert "sin\n" in text and "add mul (by shared, decomposition of f)" in text


def test_lines_fit_the_width() -> None:
    kernel = KernelReport("k", tuple(f"primitive_{n}" for n in range(50)), 1 << 20, 10**9)
    text = explanation(Report("toy", [kernel])).text(72)
    assert max(map(len, text.splitlines())) <= 72 and "primitive_49" in text
    assert "1.0 MiB" in text and "1.0 G" in text


def test_long_programs_are_cut_and_what_is_equal_counted() -> None:
    kernels = [KernelReport("k", (f"add{n}",), 4, 1) for n in range(MOST + 7)]
    text = explanation(Report("toy", kernels, buffers=[BufferReport("input", 64)] * 100)).text(80)
    assert "7 more" in text and "100 of" in text and len(text.splitlines()) < MOST + 12
    text = explanation(Report("toy", [KernelReport("k", ("add",), 4, 1)] * 50)).text(80)
    assert "×50" in text and text.count("add") == 1


def test_columns_follow_the_terminal() -> None:
    program = (
        "import polyax as jax; jax.explain(lambda x: sum(f(x) for f in [jax.numpy.sin] * 9) @ x)(jax.numpy.ones(4))"
    )
    wide, narrow = (run(program, COLUMNS=n, POLYAX_PLATFORMS="reference").stdout for n in ("200", "60"))
    assert max(map(len, narrow.splitlines())) <= 60 and len(narrow.splitlines()) >= len(wide.splitlines()) > 0


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "model.py"
    path.write_text("import polyax.numpy as jnp\ndef loss(w, x, scale): return (x @ w * scale).sum()\n")
    return str(path)


def test_command_explains(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", f"{file}:loss", "f32[4,3]", "float32[2,4]", "0.5"]) == 0
    assert "loss on" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([":loss"], "expected FILE:FUNCTION"),
        (["{file}:lost"], "no function named 'lost'"),
        (["nowhere.py:loss"], "nowhere.py"),
        (["{file}:loss", "f32[4,"], "types such as f32"),
        (["{file}:loss", "f33[4]"], "types such as f32"),
        (["{file}:loss", "f32[4,3]", "f32[2,4]", "2", "--draw", "loss.png"], ".svg or .html"),
    ],
)
def test_command_says_what_is_wrong(
    file: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *[a.format(file=file) for a in arguments]]) == 2
    assert message in capsys.readouterr().err


def test_a_closed_pipe_is_no_error() -> None:
    program = """
        import subprocess, sys
        command = [sys.executable, "-m", "polyax", "info"]
        reader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        reader.stdout.close()
        print(reader.stderr.read(), reader.wait())
    """
    assert run(program, POLYAX_PLATFORMS="reference").stdout.split() == ["0"]


def scanned(xs: Any, w: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        y = jnp.tanh(c @ w + x)
        return y, jnp.sum(jnp.exp(y) * y)

    return jax.lax.scan(body, jnp.zeros(16), xs)


def test_loops_are_seen_into(platform: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The kernels of a scan with their bytes and fusions, once per turn; the loop moves what all its turns do."""
    if platform == "reference":
        pytest.skip("it lists equations")
    told = jax.explain(scanned)(X, jax.ShapeDtypeStruct((16, 16), "float32"))
    printed = capsys.readouterr().out
    (loop,) = [k for k in told.report.kernels if k.kind == "loop"]
    (body,) = loop.programs
    each = sum(k.bytes_moved for k in body.kernels)
    assert loop.turns == 8 and loop.bytes_moved >= 8 * each > 0 and loop.bytes_moved - 8 * each < each
    fused = {p for k in body.kernels for p in k.primitives}
    assert {"tanh", "exp", "mul", "reduce_sum"} <= fused and any(d.reason is None for d in body.decisions)
    assert "8 turns" in printed and "1 loop" in printed and "tanh" in printed
    assert told.report.bytes_unfused > told.report.bytes_moved


def test_programs_of_branches_and_tests_are_named(platform: str, capsys: pytest.CaptureFixture[str]) -> None:
    if platform == "reference":
        pytest.skip("it lists equations")

    def f(x: Any) -> Any:
        step = lambda c: (c[0] + 1, jax.lax.cond(c[0] > 2, jnp.sin, jnp.cos, c[1]))
        return jax.lax.while_loop(lambda c: c[0] < 5, step, (0, x))

    jax.explain(f)(X)
    printed = capsys.readouterr().out
    for words in ("test", "before each turn", "while the test holds", "branch 0", "branch 1", "cos", "sin"):
        assert words in printed
