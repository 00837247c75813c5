"""LLVM as a service: IR text to object code, object code to addresses. Knows no kernels and no arrays.

Object code depends on the text, the processor and the versions alone (``Host.identity``), so callers may keep it.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from polyax_cpu.processors import Host, host


def _target_machine(level: int) -> llvm.TargetMachine:
    h = host()
    target = llvm.Target.from_triple(h.triple)
    return target.create_target_machine(cpu=h.cpu, features=h.features, opt=level, reloc="pic", codemodel="small")


_idle: defaultdict[tuple[Host, int], list[llvm.TargetMachine]] = defaultdict(list)
"""Target machines by processor and optimisation level that no thread is working with."""


@contextlib.contextmanager
def _machine(level: int) -> Generator[llvm.TargetMachine]:
    """A target machine for one thread alone: LLVM's are not to be shared."""
    idle = _idle[host(), level]
    try:
        machine = idle.pop()
    except IndexError:
        machine = _target_machine(level)
    yield machine
    idle.append(machine)


def _without_lock(name: str) -> Callable[..., Any]:
    """A function of LLVM's, without llvmlite's lock if it has one: threads could not compile at the same time.

    What it is given must be the calling thread's alone, context and target machine included.
    """
    function = getattr(ffi.lib, name)
    return getattr(function, "_cfn", function)


_run_passes = _without_lock("LLVMPY_RunNewModulePassManager")
_emit = _without_lock("LLVMPY_TargetMachineEmitToMemory")
_verify = _without_lock("LLVMPY_VerifyModule")


SIMPLE = ("always_inliner", "sroa", "instruction_combine", "new_gvn")
"""What code gains by that has its vectors, or none: a twelfth of the pipeline's time."""
UNROLLED = (
    "always_inliner", "simplify_cfg", "sroa", "instruction_combine", "loop_simplify", "loop_rotate", "loop_unroll",
    "sroa", "instruction_combine", "new_gvn", "dead_store_elimination", "simplify_cfg", "instruction_combine",
)  # fmt: skip
"""What long functions gain by most: short loops become straight code, whose locals are registers. A third of the
pipeline's time."""
ASKING = tuple(name for name in UNROLLED if name != "new_gvn")
"""The same for loops in stretches: in some of them, that one runs into an assertion of its own."""

IN_MEMORY = ("always_inliner", "instruction_combine", "simplify_cfg")
"""What is left where the others make no program."""


def optimize(text: str, level: int = 2, straight: bool = True) -> llvm.ModuleRef:
    """The module after LLVM's pipeline, followed by the inlining of what the vectoriser called.

    Level 3 unrolls more, which gains nothing in such loops and takes twice the time; level 1 is for code that has its
    vectors, or none. ``straight``: code without loops is made vectors of, too; without it, as for long functions, loops
    are unrolled and no more.
    """
    with _machine(level) as machine:
        return _optimize(text, level, straight, machine)


def _optimize(text: str, level: int, straight: bool, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    module = llvm.parse_assembly(text, llvm.create_context())
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = tuning.loop_interleaving = tuning.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, tuning)
    unrolled = ASKING if "@polyax_ask" in text else UNROLLED
    passes = _named(SIMPLE) if level == 1 else builder.getModulePassManager() if straight else _named(unrolled)
    _run_passes(passes, module, builder)
    if not _is_valid(module):
        return _optimize(text, level, False, machine) if level > 1 and straight else _in_memory(text, machine)
    if "llvm.compiler.used" in text:
        late = llvm.create_new_module_pass_manager()
        late.add_always_inliner_pass()
        late.add_simplify_cfg_pass()
        _run_passes(late, module, builder)
    return module


def _in_memory(text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """The module whose locals stay in memory: the pass that puts them into registers is the one that goes wrong."""
    module = llvm.parse_assembly(text, llvm.create_context())
    _run_passes(_named(IN_MEMORY), module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    return module


def _is_valid(module: llvm.ModuleRef) -> bool:
    """Whether LLVM's own pipeline left a program: where it joins short vectors, a value may come before what it is made
    of, which ends the process or gives wrong numbers. To look takes a five-hundredth of the pipeline's time."""
    with ffi.OutputString() as error:
        return not _verify(module, error)


def _named(names: Iterable[str]) -> llvm.ModulePassManager:
    passes = llvm.create_new_module_pass_manager()
    for name in names:
        getattr(passes, f"add_{name}_pass")()
    return passes


def compile(text: str, level: int = 2, straight: bool = True) -> bytes:
    """Object code of a module's text. Threads may compile at the same time."""
    with _machine(level) as machine:
        return _object_code(machine, _optimize(text, level, straight, machine))


def _object_code(machine: llvm.TargetMachine, module: llvm.ModuleRef) -> bytes:
    with ffi.OutputString() as error:
        buffer = _emit(machine, module, 1, error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


_numbers = itertools.count()
_lock = threading.Lock()


@functools.cache
def _linker() -> llvm.LLJIT:
    """By JITLink, which puts the sections of an object next to each other. The older linker maps each by itself and
    ends the process where two of them are further apart than a relative address reaches."""
    return llvm.create_lljit_compiler(_target_machine(3), use_jit_link=True)


class LoadedCode:
    """Loaded objects; their functions live as long as this one."""

    def __init__(
        self, objects: Iterable[bytes], exports: Iterable[str], imports: Mapping[str, int] | None = None
    ) -> None:
        builder = llvm.JITLibraryBuilder()
        for code in objects:
            builder.add_object_img(code)
        builder.add_current_process()
        for name, address in (imports or {}).items():
            builder.import_symbol(name, address)
        for name in exports:
            builder.export_symbol(name)
        with _lock:
            self._tracker = builder.link(_linker(), f"polyax{next(_numbers)}")

    def address(self, name: str) -> int:
        return self._tracker[name]
