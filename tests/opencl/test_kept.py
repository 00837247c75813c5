"""PoCL's folder of compiled programs: what isn't whole, or may not be, is deleted before PoCL reads it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from polyax_opencl import compiler, kept
from polyax_opencl.kept import Kept
from polyax_opencl.probe import find
from support.process import output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "pocl"
    made.mkdir()
    return made


def compiled(folder: Path, name: str, size: int = 100) -> Path:
    """A program as PoCL keeps it."""
    program = folder / name
    (program / "compute" / "1-1-1").mkdir(parents=True)
    (program / "program.bc").write_bytes(b"b" * size)
    (program / "compute" / "1-1-1" / "compute.so").write_bytes(b"s" * size)
    (program / kept.USED).touch()
    return program


def session(folder: Path, *names: str) -> None:
    """A process that compiles programs and ends well."""
    user = Kept(folder)
    user.enter()
    for name in names:
        compiled(folder, name)
    user.leave()


def entered(folder: Path) -> list[str]:
    """The programs that the next process finds."""
    user = Kept(folder)
    user.enter()
    found = sorted(f"{p.parent.name}/{p.name}" for p in folder.glob("*/*"))
    user.leave()
    return found


def test_what_was_left_well_stays(folder: Path) -> None:
    session(folder, "AB/CD", "AB/EF")
    (folder / "AB/CD" / kept.USED).touch()
    assert entered(folder) == ["AB/CD", "AB/EF"]
    session(folder, "GH/IJ")
    assert entered(folder) == ["AB/CD", "AB/EF", "GH/IJ"]


DAMAGES: dict[str, Callable[[Path], object]] = {
    "shorter": lambda program: os.truncate(program / "program.bc", 50),
    "empty": lambda program: os.truncate(program / "compute/1-1-1/compute.so", 0),
    "written again": lambda program: (program / "program.bc").write_bytes(b"x" * 100),
    "more": lambda program: (program / "other.so").touch(),
    "less": lambda program: (program / "program.bc").unlink(),
    "link": lambda program: ((program / "program.bc").unlink(), (program / "program.bc").symlink_to("/dev/zero")),
    "pipe": lambda program: ((program / "program.bc").unlink(), os.mkfifo(program / "program.bc")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_looks_otherwise_is_deleted(folder: Path, damage: str) -> None:
    session(folder, "AB/CD", "AB/EF")
    DAMAGES[damage](folder / "AB/CD")
    assert entered(folder) == ["AB/EF"]


@pytest.mark.parametrize("seal", [b"", b"{", b"[1]", b"null", b'{"AB/CD": 3}', b"[" * 10**5, b"\xff"])
def test_a_seal_that_is_damaged_seals_nothing(folder: Path, seal: bytes) -> None:
    session(folder, "AB/CD")
    (folder.parent / "pocl-users" / kept.SEAL).write_bytes(seal)
    assert entered(folder) == []


def test_what_a_killed_process_wrote_is_deleted(folder: Path) -> None:
    session(folder, "AB/CD")
    child = os.fork()
    if child == 0:
        Kept(folder).enter()
        compiled(folder, "GH/IJ")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert (folder / "GH/IJ").exists() and entered(folder) == ["AB/CD"]


def test_nothing_is_deleted_while_another_process_works(folder: Path) -> None:
    first = Kept(folder)
    first.enter()
    compiled(folder, "AB/CD")
    assert entered(folder) == ["AB/CD"], "not sealed, but in use"
    first.leave()
    assert entered(folder) == ["AB/CD"]


def test_who_leaves_last_seals_nothing_beside_one_that_was_killed(folder: Path) -> None:
    last = Kept(folder)
    last.enter()
    child = os.fork()
    if child == 0:
        Kept(folder).enter()
        compiled(folder, "AB/CD")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    last.leave()
    assert entered(folder) == []


def test_a_fork_does_not_leave_for_its_parent(folder: Path) -> None:
    parent = Kept(folder)
    parent.enter()
    child = os.fork()
    if child == 0:
        parent.leave()
        os._exit(0)
    os.waitpid(child, 0)
    compiled(folder, "AB/CD")
    assert entered(folder) == ["AB/CD"]
    parent.leave()
    assert entered(folder) == ["AB/CD"]


def test_what_was_not_used_for_longest_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session(folder, "AB/CD", "AB/EF", "AB/GH")
    monkeypatch.setattr(kept, "MAX_BYTES", 450)  # programs have 200
    for age, name in enumerate(["AB/EF", "AB/CD", "AB/GH"]):
        os.utime(folder / name / kept.USED, (10**9 - age, 10**9 - age))
    entered(folder)
    assert entered(folder) == ["AB/CD", "AB/EF"], "the seal is that of the process before"


def test_who_cannot_watch_over_it_says_so(folder: Path) -> None:
    (folder.parent / "pocl-users").touch()
    with pytest.raises(OSError, match="pocl-users"):
        Kept(folder).enter()


SUMS = """
    import polyax as jax, polyax.numpy as jnp
    print(float(jax.jit(lambda x: jnp.tanh(x @ x).sum())(jnp.ones((4, 4)))))
"""


@pytest.mark.skipif(not any(map(compiler.is_kept, find().devices)), reason="PoCL isn't installed")
@pytest.mark.parametrize("name", ["program.bc", "compute.so"])
@pytest.mark.parametrize("size", [0, 1000])
def test_pocl_does_not_die_of_files_that_were_cut_short(tmp_path: Path, name: str, size: int) -> None:
    settings = {"POLYAX_PLATFORMS": "opencl", "POLYAX_CACHE_DIR": str(tmp_path)}
    right = output(SUMS, **settings)
    written = {p: p.stat().st_mtime_ns for p in tmp_path.rglob(name)}
    assert output(SUMS, **settings) == right
    assert written == {p: p.stat().st_mtime_ns for p in tmp_path.rglob(name)}, "a cache all the same"
    for path in written:
        os.truncate(path, size)
    assert output(SUMS, **settings) == right
