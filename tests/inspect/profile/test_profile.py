"""``python -m polyax profile``: scripts that end well, that fail, and that take traces themselves."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from polyax.__main__ import main
from support import process
from support.pprof import decoded

FILES = {"trace.json.gz", "memory.prof", "timeline.svg", "time.svg", "memory.svg"}
TRAINS = """
    import sys
    import polyax as jax, polyax.numpy as jnp

    @jax.jit
    def step(w, x):
        return w - 0.1 * jnp.tanh(x @ w)

    def made():
        return jnp.ones((300, 300)) * 0.5

    if __name__ == "__main__":
        w, x = made(), made()
        for _ in range(3):
            w = step(w, x)
        w.block_until_ready()
        print("arguments:", *sys.argv[1:], "in", sys.path[0])
"""


def profile(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The finished command, for a script that is written to ``folder``; it starts there."""
    (folder / "script.py").write_text(textwrap.dedent(program))
    return profiled(folder, "script.py", *arguments)


def profiled(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "polyax", "profile", "--out", "found", *arguments]
    environment = process.os.environ | {"POLYAX_PLATFORMS": "cpu", "COLUMNS": "110"}
    return process.finished(words, 120, environment, folder)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("profile")
    done = profile(folder, TRAINS, "--epochs", "3")
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_scripts_run_as_they_do_alone(trained: tuple[Path, str]) -> None:
    folder, printed = trained
    assert f"arguments: --epochs 3 in {folder.resolve()}" in printed


def test_tables_name_kernels_primitives_and_lines(trained: tuple[Path, str]) -> None:
    _, printed = trained
    words = " ".join(printed.split())
    assert "kernel tanh mul sub" in words and "library call dot_general" in words
    assert "script.py:7 (step)" in words and "compile step" in words
    (row,) = [line.split() for line in printed.splitlines() if "script.py:10 (made)" in line and "KiB" in line]
    assert row[0] in ("351.6", "703.1"), "one array or both, depending on when the peak was looked at"
    assert "runpy" not in printed and "polyax_inspect" not in printed


def test_files_are_written_and_named(trained: tuple[Path, str]) -> None:
    folder, printed = trained
    assert {p.name for p in (folder / "found").iterdir()} == FILES
    assert all(f"found/{name}" in printed for name in FILES)
    timeline = (folder / "found/timeline.svg").read_text()
    assert "tanh mul sub" in timeline and "script.py:7 (step)" in timeline
    events = json.loads(gzip.decompress((folder / "found/trace.json.gz").read_bytes()))["traceEvents"]
    assert "kernel" in {e.get("cat") for e in events}
    samples = decoded((folder / "found/memory.prof").read_bytes())["samples"]
    assert {"made", "<module>"} <= {function for stack, _, _ in samples for function, _, _ in stack}


FAILS = """
    import polyax.numpy as jnp
    kept = jnp.ones(1000) + 1
    {end}
"""


@pytest.mark.parametrize(
    "end, status, said",
    [
        ("raise KeyError('mine')", 1, 'File "script.py", line 4, in <module>'),
        ("raise SystemExit(7)", 7, ""),
        ("import sys; sys.exit('no data')", 1, "no data"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
        ("a b", 1, "SyntaxError"),
        ("from polyax import profiler; profiler.stop_trace()", 0, "the script stopped the trace"),
        ("from polyax import profiler; profiler.start_trace('x')", 1, "Only one profile may be run at a time"),
    ],
)  # fmt: skip
def test_whatever_the_end_there_is_a_report(tmp_path: Path, end: str, status: int, said: str) -> None:
    done = profile(tmp_path, FAILS.format(end=end))
    assert done.returncode == status and said in done.stderr
    assert "polyax_inspect" not in done.stderr, "a traceback begins in the script"
    assert {p.name for p in (tmp_path / "found").iterdir()} == FILES
    assert ("kernel" in done.stdout) == ("SyntaxError" not in said)


WORKS = """
    import sys, threading, time
    from concurrent.futures import ThreadPoolExecutor
    import polyax as jax, polyax.numpy as jnp

    def work():
        time.sleep(0.3)
        jax.jit(jnp.cosh)(jnp.ones(3)).block_until_ready()

    idle = ThreadPoolExecutor(1)
    idle.submit(print, "submitted").result()
    threading.Thread(target=work, name="late").start()
    print(__name__, sys.argv[1:])
"""


def test_threads_are_waited_for_as_python_would(tmp_path: Path) -> None:
    done = profile(tmp_path, WORKS)
    assert done.returncode == 0, done.stderr
    assert "submitted" in done.stdout and "cosh" in done.stdout


def test_modules_run_as_they_do_alone(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").write_text("")
    (tmp_path / "package/__main__.py").write_text("import package.train")
    (tmp_path / "package/train.py").write_text(textwrap.dedent(WORKS))
    (tmp_path / "package/fails.py").write_text("raise KeyError('mine')")
    done = profiled(tmp_path, "-m", "package.train", "--epochs", "3")
    assert done.returncode == 0, done.stderr
    assert "__main__ ['--epochs', '3']" in done.stdout and "Profile of package.train" in done.stdout
    assert "cosh" in done.stdout and "package/train.py" in done.stdout
    assert "package.train []" in profiled(tmp_path, "-m", "package").stdout
    for name, said in (("fails", 'fails.py", line 1, in <module>'), ("missing", "No module named package.missing")):
        done = profiled(tmp_path, "-m", f"package.{name}")
        assert done.returncode == 1 and said in done.stderr and "runpy" not in done.stderr


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["profile", *arguments]) == 2
    return capsys.readouterr().err


def test_bad_input_is_refused_before_the_script_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (script := tmp_path / "script.py").write_text("raise AssertionError('it ran')")
    assert "there is no file missing.py; expected a script" in refused(capsys, "missing.py")
    assert "there is no module missing; expected the name of one" in refused(capsys, "-m", "missing")
    assert "--top: expected a number of rows, got 0" in refused(capsys, "--top", "0", str(script))
    assert "File exists" in refused(capsys, "--out", str(script), str(script))
