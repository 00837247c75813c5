"""A GPU on the host, for tests: CUDA C compiled as C++, the threads of a block taking turns at barriers.

It shows that the text computes what it should with the geometry and arguments that a launch gives it. It says nothing
of speed, of NVIDIA's mathematical functions, or of races between threads.
"""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyax_cuda.emitter import HEADER
from polyax_kernels.gpu.runtime import KernelRejected, Mark, Runtime
from polyax_kernels.ir.limits import Limits

BEFORE = """
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
struct Place { unsigned x, y, z; };
static Place threadIdx, blockIdx, blockDim, gridDim;
static ucontext_t scheduler, *running;
static void __syncthreads() { swapcontext(running, &scheduler); }
#define __syncwarp __syncthreads
template <class T> static T exchanged(T *p, T x) { T before = *p; *p = x; return before; }
template <class T, class U> static T atomicAdd(T *p, U x) { return exchanged(p, (T)(*p + x)); }
template <class T, class U> static T atomicSub(T *p, U x) { return exchanged(p, (T)(*p - x)); }
template <class T, class U> static T atomicMax(T *p, U x) { return exchanged(p, *p < (T)x ? (T)x : *p); }
template <class T, class U> static T atomicMin(T *p, U x) { return exchanged(p, *p > (T)x ? (T)x : *p); }
template <class T, class U> static T atomicExch(T *p, U x) { return exchanged(p, (T)x); }
template <class T, class U> static T atomicCAS(T *p, U before, U after) {
  return exchanged(p, *p == (T)before ? (T)after : *p);
}
"""

AFTER = """
template <int... I> struct Numbers {};
template <int N, int... I> struct Below : Below<N - 1, N - 1, I...> {};
template <int... I> struct Below<0, I...> : Numbers<I...> {};
template <class... A, int... I>
static void call(void (*f)(A...), void **values, Numbers<I...>) { f(*(A *)values[I]...); }
template <class... A> static void call(void (*f)(A...), void **values) { call(f, values, Below<sizeof...(A)>()); }
static void **arguments;
static bool ended;
static void thread() { call(KERNEL, arguments); ended = true; }

static void place(unsigned n) {
  threadIdx = {n % blockDim.x, n / blockDim.x % blockDim.y, n / blockDim.x / blockDim.y};
}

struct Fiber { ucontext_t context; bool done; };
enum { STACK = 65536 };

static void block(unsigned count, Fiber *fibers, char *stacks) {
  for (unsigned n = 0; n < count; n++) {
    ucontext_t &fiber = fibers[n].context;
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = stacks + (size_t)n * STACK;
    fiber.uc_stack.ss_size = STACK;
    fiber.uc_link = &scheduler;
    makecontext(&fiber, thread, 0);
    fibers[n].done = false;
  }
  for (unsigned live = count; live;)
    for (unsigned n = 0; n < count; n++)
      if (!fibers[n].done) {
        place(n);
        ended = false;
        running = &fibers[n].context;
        swapcontext(&scheduler, running);
        if (ended) fibers[n].done = true, live--;
      }
}

extern "C" void run(void **values, const unsigned *groups, const unsigned *threads) {
  arguments = values;
  gridDim = {groups[0], groups[1], groups[2]};
  blockDim = {threads[0], threads[1], threads[2]};
  unsigned count = threads[0] * threads[1] * threads[2];
  Fiber *fibers = (Fiber *)malloc(count * sizeof(Fiber));
  char *stacks = (char *)malloc((size_t)count * STACK);
  for (unsigned z = 0; z < groups[2]; z++)
    for (unsigned y = 0; y < groups[1]; y++)
      for (unsigned x = 0; x < groups[0]; x++) {
        blockIdx = {x, y, z};
        if (BARRIERS) block(count, fibers, stacks);
        else for (unsigned n = 0; n < count; n++) place(n), thread();
      }
  free(stacks);
  free(fibers);
}
"""


@functools.cache
def compiled(source: str, name: str) -> Any:
    """A function of pointers to the arguments, the groups and the threads of a launch.

    With the headers of C alone: those of C++, its own ``math.h`` too, take five times as long as a kernel.
    """
    text = source.replace(HEADER, "").replace("__syncwarp()", "__syncthreads()")
    macros = [f"-DKERNEL={name}", f"-DBARRIERS={int('__syncthreads' in text)}"]
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "kernel.so")
        words = "c++ -std=c++17 -nostdinc++ -O1 -ffp-contract=off -shared -fPIC -w -x c++ - -o"
        command, text = [*words.split(), str(library), *macros], BEFORE + text + AFTER
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        if done.returncode:
            raise KernelRejected("the emulator", done.stderr, source)
        return ctypes.CDLL(str(library)).run


@dataclass(frozen=True, eq=False)
class Pointer:
    """Memory as CuPy's ``MemoryPointer`` is: an address that can be moved."""

    block: np.ndarray
    ptr: int

    def __add__(self, offset: int) -> Pointer:
        return Pointer(self.block, self.ptr + offset)

    def array(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        return np.ndarray(tuple(shape), dtype, self.block, self.ptr - self.block.ctypes.data)


class Now(Mark):
    """Everything is done as soon as it is asked for."""

    def done(self) -> bool:
        return True

    def wait(self) -> None:
        pass


class EmulatedRuntime(Runtime):
    """One such GPU."""

    kind = "emulator"
    records = True

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.free: dict[int, list[np.ndarray]] = {}
        """Blocks that nobody refers to: as a pool does, the next allocation gets the last one back."""
        self.recorded: list[Callable[[], None]] | None = None
        self.replayed = 0

    def allocate(self, nbytes: int) -> Pointer:
        free = self.free.setdefault(nbytes, [])
        block = free.pop() if free else np.empty(nbytes + 512, np.uint8)
        pointer = Pointer(block, -(-block.ctypes.data // 512) * 512)
        weakref.finalize(pointer, free.append, block)
        return pointer

    def write(self, target: Any, offset: int, host: np.ndarray) -> None:
        ctypes.memmove(target.ptr + offset, host.ctypes.data, host.nbytes)

    def read(self, source: Any, offset: int, host: np.ndarray) -> None:
        ctypes.memmove(host.ctypes.data, source.ptr + offset, host.nbytes)

    def copy(self, source: Any, source_offset: int, target: Any, target_offset: int, nbytes: int) -> None:
        places = target.ptr + target_offset, source.ptr + source_offset
        self.do(lambda: ctypes.memmove(*places, nbytes))

    def do(self, work: Callable[[], Any]) -> None:
        """Now, or, while it is recorded, later."""
        if self.recorded is None:
            work()
        else:
            self.recorded.append(work)

    def load(self, source: str, name: str) -> Any:
        return compiled(source, name)

    def launch(
        self,
        function: Any,
        groups: tuple[int, ...],
        threads: tuple[int, ...],
        operands: Sequence[tuple[Any, int]],
        scalars: Sequence[int],
    ) -> None:
        values = (ctypes.c_int64 * 512)(*[memory.ptr + offset for memory, offset in operands], *scalars)
        places = (ctypes.c_void_p * 512)(*[ctypes.addressof(values) + 8 * n for n in range(512)])
        three = [(ctypes.c_uint * 3)(*sizes, *[1] * (3 - len(sizes))) for sizes in (groups, threads)]
        self.do(lambda: (values, function(places, *three)))

    def address(self, memory: Any) -> int:
        return memory.ptr

    def record(self, work: Callable[[], None]) -> Any:
        self.recorded = recorded = []
        work()
        self.recorded = None
        return recorded

    def replay(self, recording: Any) -> None:
        self.replayed += 1
        for work in recording:
            work()

    def mark(self) -> Mark:
        return Now()

    def synchronize(self) -> None:
        pass
