"""LLVM as a service: IR text to object code, object code to addresses. Knows no kernels and no arrays.

Object code depends on the text, the processor and the versions alone, so callers may keep it on disk (``identity``).
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import llvmlite
import llvmlite.binding as llvm


@dataclass(frozen=True)
class Host:
    """The processor that code is made for."""

    triple: str
    cpu: str
    features: str

    @property
    def vector_bits(self) -> int:
        """The widest vectors that pay."""
        return 512 if "+avx512f" in self.features else 256

    @property
    def identity(self) -> str:
        """Part of the key of object code kept on disk."""
        version = ".".join(map(str, llvm.llvm_version_info))
        return f"{self.triple} {self.cpu} {self.features} llvm {version} llvmlite {llvmlite.__version__}"


@functools.cache
def host() -> Host:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


def _target_machine(level: int) -> llvm.TargetMachine:
    h = host()
    target = llvm.Target.from_triple(h.triple)
    return target.create_target_machine(cpu=h.cpu, features=h.features, opt=level, reloc="pic", codemodel="small")


class _Compiler(threading.local):
    """Target machines of one thread, by optimisation level; LLVM's are not to be shared."""

    def __init__(self) -> None:
        self.machines: dict[int, llvm.TargetMachine] = {}

    def machine(self, level: int) -> llvm.TargetMachine:
        if level not in self.machines:
            self.machines[level] = _target_machine(level)
        return self.machines[level]


_compiler = _Compiler()


def optimize(text: str, level: int = 2) -> llvm.ModuleRef:
    """The module after LLVM's pipeline, followed by the inlining of what the vectoriser called.

    Level 3 unrolls more, which gains nothing in such loops and takes twice the time.
    """
    module = llvm.parse_assembly(text)
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_interleaving = level > 1
    builder = llvm.create_pass_builder(_compiler.machine(level), tuning)
    builder.getModulePassManager().run(module, builder)
    if "llvm.compiler.used" in text:
        late = llvm.create_new_module_pass_manager()
        late.add_always_inliner_pass()
        late.add_simplify_cfg_pass()
        late.run(module, builder)
    return module


def compile(text: str, level: int = 2) -> bytes:
    """Object code of a module's text."""
    return _compiler.machine(level).emit_object(optimize(text, level))


_numbers = itertools.count()
_lock = threading.Lock()


@functools.cache
def _linker() -> llvm.LLJIT:
    return llvm.create_lljit_compiler(_target_machine(3))


class LoadedCode:
    """Loaded object code; its functions live as long as this object."""

    def __init__(self, code: bytes, exports: Iterable[str], imports: Mapping[str, int] | None = None) -> None:
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name, address in (imports or {}).items():
            builder.import_symbol(name, address)
        for name in exports:
            builder.export_symbol(name)
        with _lock:
            self._tracker = builder.link(_linker(), f"polyax{next(_numbers)}")

    def address(self, name: str) -> int:
        return self._tracker[name]
