import os
import random
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from polyax.ir.config import config
from polyax.runtime.contract import cache as cache_module
from polyax.runtime.contract.cache import DiskCache


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "compiled"
    with config.override(cache_dir=str(root), compilation_cache=True):
        yield root


def entry_of(root: Path, kind: str = "test") -> Path:
    (path,) = (root / kind).iterdir()
    return path


def test_round_trip_of_any_bytes_and_counters(root: Path) -> None:
    cache = DiskCache("test")
    data = bytes(range(256)) * 3 + b"\n{}\n"
    assert cache.get("k") is None
    cache.put("k", data)
    assert cache.get("k") == data
    assert DiskCache("test").get("k") == data, "another instance, as in another process, finds it"
    assert DiskCache("other").get("k") is None
    assert (cache.stats().hits, cache.stats().misses, cache.stats().writes) == (1, 1, 1)


def test_directories_are_private(root: Path) -> None:
    DiskCache("test").put("k", b"x")
    for directory in (root, root / "test"):
        assert directory.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "header", "nested", "binary", "swapped"])
def test_damaged_entry_is_a_miss_and_can_be_replaced(root: Path, damage: str) -> None:
    cache = DiskCache("test")
    cache.put("k", b"machine code")
    path = entry_of(root)
    raw = path.read_bytes()
    path.write_bytes(
        {
            "flip": raw[:-1] + b"X",
            "truncate": raw[:-3],
            "empty": b"",
            "header": b"[1]" + raw,
            "nested": b"[" * 100_000,
            "binary": bytes(range(255, -1, -1)),
            "swapped": cache_module._encode("another key", b"machine code"),
        }[damage]
    )
    assert cache.get("k") is None
    assert cache.stats().damaged == 1
    cache.put("k", b"machine code")
    assert cache.get("k") == b"machine code"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720])
def test_refused_if_others_can_write(root: Path, mode: int) -> None:
    root.mkdir()
    root.chmod(mode)
    cache = DiskCache("test")
    with pytest.warns(UserWarning, match=r"others can write to it \(mode 07.*POLYAX_CACHE_DIR"):
        cache.put("k", b"x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.get("k") is None
    assert not any(root.iterdir())


def test_refused_if_owned_by_another(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert "belongs to user id" in str(cache_module.why_no_cache(root))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives links to others")
def test_refused_if_it_is_the_link_of_another(root: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o700)
    root.symlink_to(tmp_path / "mine")
    assert cache_module.why_no_cache(root) is None, "one's own link is a choice"
    os.lchown(root, 54321, -1)
    with pytest.warns(UserWarning, match="a link of user id 54321, who can turn it elsewhere"):
        DiskCache("test").put("k", b"x")
    assert not any((tmp_path / "mine").iterdir())


def test_refused_if_everybody_can_put_another_in_its_place(root: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.warns(UserWarning, match="everybody can put another in its place: .*sticky bit"):
        DiskCache("test").put("k", b"x")
    tmp_path.chmod(0o1777)  # as /tmp is
    assert cache_module.why_no_cache(root) is None


def test_entries_that_are_links_are_replaced_not_followed(root: Path, tmp_path: Path) -> None:
    cache, precious = DiskCache("test"), tmp_path / "precious"
    precious.write_bytes(b"mine")
    cache.put("k", b"machine code")
    path = entry_of(root)
    path.unlink()
    path.symlink_to(precious)
    assert cache.get("k") is None and cache.stats().damaged == 1
    cache.put("k", b"machine code")
    assert cache.get("k") == b"machine code" and precious.read_bytes() == b"mine"


def a_folder(path: Path) -> None:
    (path / "full").mkdir(parents=True)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def a_file_without_end(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(2**40)


IMPOSTORS = {
    "pipe": os.mkfifo,
    "folder": a_folder,
    "socket": a_socket,
    "zeros": lambda path: path.symlink_to("/dev/zero"),
    "terminal": lambda path: path.symlink_to("/dev/tty"),
    "sparse": a_file_without_end,
}


@pytest.mark.parametrize("kind", IMPOSTORS)
def test_what_is_no_entry_is_neither_waited_for_nor_read(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    cache = DiskCache("test")
    cache.put("k", b"machine code")
    path = entry_of(root).relative_to(tmp_path)
    path.unlink()
    IMPOSTORS[kind](path)
    assert cache.get("k") is None and cache.stats().hits == 0
    if kind == "folder":
        with pytest.warns(UserWarning, match=r"Compiled code could not be kept in .*: .*directory"):
            cache.put("k", b"machine code")
    else:
        cache.put("k", b"machine code")
        assert cache.get("k") == b"machine code" and not path.is_symlink()


def test_off_by_setting(root: Path) -> None:
    with config.override(compilation_cache=False):
        DiskCache("test").put("k", b"x")
    assert not root.exists()


def test_xdg_cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with config.override(cache_dir=None):
        assert cache_module.cache_root() == tmp_path / "polyax"


def test_least_recently_used_entries_go_first(root: Path) -> None:
    cache = DiskCache("test", max_bytes=4500)
    for i in range(4):
        cache.put(f"k{i}", bytes(900))
        os.utime(root / "test" / cache_module._file_name(f"k{i}"), (i, i))
    assert cache.get("k0") is not None  # makes it the youngest
    cache.put("k4", bytes(900))
    kept = [i for i in range(5) if cache.get(f"k{i}") is not None]
    assert kept == [0, 4] or kept == [0, 3, 4]
    assert sum(p.stat().st_size for p in (root / "test").iterdir()) <= 4500


def test_who_writes_little_seldom_counts_all_entries(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each instance is as one in a process of its own; together they keep to the limit."""
    looked = []
    counted = cache_module._prune
    monkeypatch.setattr(cache_module, "_prune", lambda *args: looked.append(args) or counted(*args))
    random.seed(7)
    for i in range(400):
        DiskCache("test", max_bytes=160_000).put(f"k{i}", bytes(900))
    assert 10 < len(looked) < 80, "a tenth of 400: each writes a tenth of what may be too much"
    assert sum(p.stat().st_size for p in (root / "test").iterdir()) < 160_000 * 1.5


def test_two_processes_write_the_same_entry(root: Path) -> None:
    program = f"""
from polyax.ir.config import config
from polyax.runtime.contract.cache import DiskCache
config.update("cache_dir", {str(root)!r})
cache = DiskCache("test")
for _ in range(200):
    cache.put("k", b"a" * 5000)
    assert cache.get("k") == b"a" * 5000
"""
    writers = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]
    assert [w.wait(60) for w in writers] == [0, 0]
    assert entry_of(root).stat().st_size > 5000, "no temporary file is left"
