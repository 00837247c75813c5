"""Object code: made, loaded."""

import sys

import pytest

from polyax_cpu import compiler, processors
from support.process import run

PAGES_APART = """
import ctypes, mmap
from polyax_cpu import compiler

libc = ctypes.CDLL(None)
libc.mmap.restype, libc.munmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
NORESERVE, GIGABYTE, PAGE = 0x4000, 1 << 30, mmap.PAGESIZE
taken = lambda size: libc.mmap(None, size, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE, -1, 0)

steps = ["%a{0} = fmul double %a{1}, 0x3FF123456789{0:04X}".format(n + 1, n) for n in range(1000)]
text = "define double @product(double %a0) {{\\n{}\\nret double %a1000\\n}}".format("\\n".join(steps))
code = compiler.compile(text)
compiler.LoadedCode([code], ["product"])  # what the linker needs itself
large = [taken(3 * GIGABYTE) for _ in range(8)]
for n in range(80000):
    taken(PAGE if n > 20000 else 4 * PAGE)
for n, place in enumerate(large):
    libc.munmap(place + GIGABYTE, (2, 3, 16, 16, 16, 16, 16, 16)[n] * PAGE)
loaded = compiler.LoadedCode([code], ["product"])
product = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(loaded.address("product"))
assert product(0.5) == 0.5 * product(1.0) > 0
print("loaded")
"""
"""Constants and code of more pages than the first holes have, of which each is gigabytes from the next."""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="fills the address space as Linux lays it out")
def test_code_is_near_its_constants_in_a_full_address_space() -> None:
    done = run(PAGES_APART)
    assert (done.returncode, done.stdout) == (0, "loaded\n"), done.stderr


REPEATED = """
define void @repeat(ptr %x, ptr %y) {
%byte = load i8, ptr %x
%first = insertelement <2 x i8> poison, i8 %byte, i64 0
%both = shufflevector <2 x i8> %first, <2 x i8> poison, <2 x i32> zeroinitializer
store <2 x i8> %both, ptr %y
ret void
}
"""


def test_no_instruction_that_lacks_a_form_for_wide_vectors() -> None:
    assert "+sse4a" not in processors.host().features
    with compiler._machine(1) as machine:
        assert "insertq" not in machine.emit_assembly(compiler.optimize(REPEATED, 1))
