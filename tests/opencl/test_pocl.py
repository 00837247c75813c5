"""PoCL on processors that its compiler doesn't know: it is told the name of one that it does."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from polyax_opencl import pocl, probe
from polyax_opencl.probe import cl


class Record(ctypes.Structure):
    """As long as what is looked through, with a name somewhere."""

    _fields_ = [("before", ctypes.c_void_p * 80), ("name", ctypes.c_void_p), ("after", ctypes.c_void_p * 431)]


def record(name: bytes) -> tuple[Record, ctypes.Array[ctypes.c_char]]:
    text = ctypes.create_string_buffer(name)
    made = Record(name=ctypes.addressof(text))
    made.before[3], made.after[7] = 8, (1 << 64) - 1  # addresses where nothing is
    return made, text


@pytest.mark.skipif(not pocl.Path("/proc/self/mem").exists(), reason="Linux")
def test_an_unknown_processor_gets_its_level() -> None:
    made, text = record(b"generic")
    assert pocl.name_processor(ctypes.addressof(made))
    assert ctypes.string_at(made.name) == pocl.level(pocl.processor_flags())
    assert text.value == b"generic" and made.before[3] == 8 and made.after[6] is None


def test_a_record_that_looks_otherwise_is_left_alone() -> None:
    made, text = record(b"znver2")
    assert not pocl.name_processor(ctypes.addressof(made)) and made.name == ctypes.addressof(text)


def test_what_lies_behind_the_name_is_left_alone() -> None:
    made, text = record(b"generic")
    made.after[0] = ctypes.addressof(text)
    assert pocl.name_processor(ctypes.addressof(made)) and pocl.name_processor(ctypes.addressof(made))
    assert made.name != made.after[0] == ctypes.addressof(text)


def test_levels() -> None:
    assert pocl.level(frozenset(pocl.V4) | {"sha_ni"}) == b"x86-64-v4"
    assert pocl.level(frozenset(pocl.V3)) == b"x86-64-v3"
    assert pocl.level(frozenset(pocl.V3) - {"fma"}) == b"x86-64-v2"
    assert pocl.level(frozenset()) == b"x86-64"


@pytest.mark.parametrize(("machine", "version", "known"), [
    ("x86_64", "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-generic", False),
    ("x86_64", "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-znver2", True),
    ("aarch64", "OpenCL 3.0 PoCL HSTR: pthread-aarch64-unknown-linux-gnu-generic", True),
])  # fmt: skip
def test_who_is_unknown(machine: str, version: str, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pocl.platform, "machine", lambda: machine)
    assert pocl.knows_processor(version) is known


def test_users_read_why_there_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = record(b"znver9")
    device = SimpleNamespace(
        available=1, compiler_available=1, version="pthread-x86_64-generic", int_ptr=ctypes.addressof(made)
    )
    platform = SimpleNamespace(name=pocl.PLATFORM, version="3.0", get_devices=lambda: [device])
    monkeypatch.setattr(cl, "get_platforms", lambda: [platform])
    monkeypatch.setattr(pocl.platform, "machine", lambda: "x86_64")
    reason = probe.find.__wrapped__().why_none
    assert reason is not None and pocl.TOO_OLD in reason and "use a newer one" in reason
