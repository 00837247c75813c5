"""Programs over several processes: the cases of two files under mpiexec, and how they end."""

from __future__ import annotations

import contextlib
import re
import socket
import textwrap
from pathlib import Path

import pytest
from mpi.launching import cases, launch

from polyax_mpi import watching
from support import process

CASES = [Path(__file__).with_name(name) for name in ("process_cases.py", "mesh_cases.py")]


@pytest.mark.parametrize(("processes", "devices"), [(2, 2), (4, 1)])
def test_cases(processes: int, devices: int) -> None:
    cases(CASES, processes, devices)


@pytest.mark.parametrize("platform_name", ["reference", "opencl"])
def test_cases_on_other_platforms(platform_name: str) -> None:
    cases(CASES, 2, 2, "-m", "sample", POLYAX_DEVICE=platform_name)


def test_cases_without_threads_in_mpi() -> None:
    """An MPI that takes one call at a time."""
    cases(CASES, 2, 2, "-m", "sample", MPI4PY_RC_THREAD_LEVEL="serialized")


def test_what_the_guide_says_is_printed() -> None:
    """Each process prints at its end, in one piece; in which order they do isn't said."""
    guide = (Path(__file__).parents[2] / "docs" / "processes.md").read_text()
    (program,) = re.findall(r"```python\n(.*?initialize.*?)```", guide, re.DOTALL)
    done = launch(4, "-c", program, PYTHONUNBUFFERED="")
    assert done.returncode == 0, done.stderr
    devices, mean = re.findall(r"`(1 devices here, 4 in all)`|`(\[\[.*?\]\])`", guide)
    said = [*(f"{n} of 4" for n in range(4)), *[devices[0]] * 4, *[mean[1]] * 4]
    assert sorted(done.stdout.splitlines()) == sorted(said)


# --- how they end

SET_UP = """
    import os, sys, time, numpy as np, polyax
    from polyax import lax
    polyax.distributed.initialize()
    rank = polyax.process_index()
    total = polyax.pmap(lambda x: lax.psum(x, "i"), "i")
    other = polyax.pmap(lambda x: lax.psum(x * 2, "i"), "i")
    one = np.ones(1, np.float32)
    total(one).block_until_ready()
"""


def ended(program: str, processes: int = 3) -> str:
    """What a program that fails in one of its processes says; the launcher has ended all of them."""
    done = launch(processes, "-c", textwrap.dedent(SET_UP) + textwrap.dedent(program))
    assert done.returncode != 0, done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize("victim", [0, 2])
def test_a_killed_process_is_named(victim: int) -> None:
    text = ended(f"""
        if rank == {victim}:
            time.sleep(0.2)
            os.kill(os.getpid(), 9)
        while True:
            total(one).block_until_ready()
    """)
    assert re.search(rf"polyax: process {victim} of 3 \(.*, pid \d+\) ended without a word", text), text


def test_an_error_ends_all() -> None:
    text = ended("""
        if rank == 1:
            raise ValueError("no data")
        total(one).block_until_ready()
    """)
    assert re.search(r"polyax: process 1 of 3 \(.*\) failed: ValueError: no data\. All processes are ended", text), text


def test_nobody_waits_for_a_process_that_has_ended() -> None:
    text = ended("""
        if rank == 1:
            sys.exit(0)
        total(one).block_until_ready()
    """)
    assert re.search(r"waits in psum of pmap\(<lambda>\) for process 1 of 3 \(.*\), which has ended", text), text


def test_different_programs_are_shown_side_by_side() -> None:
    text = ended("""
        from polyax.errors import ProgramMismatch
        third = polyax.pmap(lambda x: lax.psum(x * 3, "i"), "i")
        try:
            (other if rank == 1 else third)(one)
        except ProgramMismatch as e:
            sys.exit(f"({rank}) {e}")
    """)
    assert text.count("The processes are about to run different programs together") == 3
    for line in ("--- processes 0, 2", "+++ process 1", "-    c:f32[] = mul b 3.0", "+    c:f32[] = mul b 2.0"):
        assert text.count(line) == 3, text


def test_a_process_in_another_program_is_found() -> None:
    """One runs what it has compiled, the others compile: nobody can compare."""
    text = ended("""
        (total if rank == 1 else other)(one).block_until_ready()
    """)
    assert "waits in compiling pmap(<lambda>) for process 1 of 3" in text or "for it: they run different" in text, text
    assert "they run different programs" in text


def test_who_is_busy_in_a_program_is_waited_for() -> None:
    """One process waits for another that is late in a program, which already waits in what comes after it."""
    done = launch(2, "-c", textwrap.dedent(SET_UP) + textwrap.dedent("""
        def late(x):
            time.sleep(8 * rank)
            return x

        first = polyax.pmap(lambda x: lax.psum(polyax.pure_callback(late, polyax.typeof(x), x), "i"), "i")
        out = first(one)
        if rank == 0:
            out.block_until_ready()
        print(f"{other(one)} {out}")
    """))  # fmt: skip
    assert done.returncode == 0 and done.stdout.count("[4.] [2.]") == 2, done.stdout + done.stderr


def test_a_process_that_is_forked_off_is_alone() -> None:
    """It ends as it likes: by itself, or by an error. Neither ends the others, nor makes them wait."""
    done = launch(
        2,
        "-c",
        textwrap.dedent(SET_UP)
        + textwrap.dedent("""
        for fails in (False, True):
            child = os.fork()
            if not child:
                assert polyax.process_count() == 1 and not polyax.distributed.is_initialized()
                if fails:
                    raise LookupError("of the child")
                sys.exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (1 if fails else 7)
            assert polyax.process_count() == 2 and total(one)[0] == 2
        print("done", flush=True)
        """),
        timeout=100,
    )
    assert done.returncode == 0 and done.stdout.count("done") == 2, done.stdout + done.stderr
    assert "failed" not in done.stderr and done.stderr.count("LookupError: of the child") == 2


def test_strangers_at_the_watchmans_port() -> None:
    """What they say means nothing, and ends nothing."""
    port = watching.start_watchman(2, "secret", "127.0.0.1", 60)
    for said in (b"GET / HTTP/1.1\n\n", b'{"token": "wrong"}\n{"rank": 1}\n', b"[1]\n", b"3\n", b"x" * (1 << 18)):
        with socket.create_connection(("127.0.0.1", port)) as stranger, contextlib.suppress(ConnectionError):
            stranger.sendall(said)
            assert not stranger.recv(1)
    with socket.create_connection(("127.0.0.1", port)) as mine:
        mine.sendall(b'{"token": "secret", "rank": 0, "about": "here"}\n{"failed": "no data"}\n')
        assert mine.recv(1) == b"!"


def test_processes_on_different_platforms() -> None:
    done = launch(2, "-c", textwrap.dedent("""
        import os
        os.environ["POLYAX_PLATFORMS"] = ["cpu", "reference"][int(os.environ["PMI_RANK"])]
        import polyax
        polyax.distributed.initialize()
    """))  # fmt: skip
    assert "compute on different platforms: process 0: cpu; process 1: reference" in done.stderr


def test_another_number_than_expected() -> None:
    done = launch(2, "-c", "import polyax; polyax.distributed.initialize(num_processes=3)")
    assert "num_processes=3, and there are 2 by MPI" in done.stderr and done.returncode != 0


# --- without mpiexec


def test_alone() -> None:
    assert (
        process.output("""
        import polyax
        assert not polyax.distributed.is_initialized()
        polyax.distributed.initialize()
        assert polyax.distributed.is_initialized()
        try:
            polyax.distributed.initialize()
        except RuntimeError as e:
            assert "should only be called once" in str(e)
        polyax.distributed.shutdown()
        assert not polyax.distributed.is_initialized()
        import sys
        print(polyax.process_count(), "mpi4py" in sys.modules)
    """)
        == "1 False"
    )


@pytest.mark.parametrize("disabled", ["", "polyax-mpi"])
def test_nothing_connects_the_processes(disabled: str) -> None:
    program = "import polyax; polyax.distributed.initialize(num_processes=4, process_id=1)"
    done = process.run(program, POLYAX_DISABLE_PLUGINS=disabled)
    assert "nothing connects 4 processes" in done.stderr and "mpiexec -n 4" in done.stderr
    assert ("it wasn't started by mpiexec" in done.stderr) == (not disabled)


def test_a_launcher_without_a_plugin() -> None:
    done = process.run(
        "import polyax; polyax.distributed.initialize()", PMI_SIZE="4", POLYAX_DISABLE_PLUGINS="polyax-mpi"
    )
    assert "nothing connects 4 processes" in done.stderr and "polyax[mpi]" in done.stderr
