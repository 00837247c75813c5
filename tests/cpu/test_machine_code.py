"""Code on disk: what is kept under a key of its own is not even written again."""

from __future__ import annotations

import ctypes

from polyax_cpu import machine_code
from polyax_cpu.llvm import Module


def test_what_is_kept_is_not_written_again() -> None:
    written = list[str]()

    def write() -> str:
        module = Module(["seven"])
        b = module.function("i64", "seven", [])
        b.ret(b.const(7, "i64"))
        written.append(module.text())
        return written[-1]

    for _ in range(2):
        code = machine_code.written("seven, of a test", write, ["seven"], {})
        assert ctypes.CFUNCTYPE(ctypes.c_int64)(code.address("seven"))() == 7
    assert len(written) == 1
