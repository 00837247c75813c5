"""Which processor code is made for: this one, or one of the usual levels of x86-64, whose code runs on many."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Generator
from dataclasses import dataclass

import llvmlite
import llvmlite.binding as llvm

from polyax.ir.config import Flag, config

cpu_target = config.add_flag(
    Flag("cpu_target", "", str, "processors that code is made for: x86-64-v3, x86-64-v4; empty: this one")
)


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
    def has_masks(self) -> bool:
        """Whether a vector of any type is read and written under a mask by one instruction."""
        return all(f"+{name}" in self.features.split(",") for name in ("avx512bw", "avx512vl"))

    @property
    def has_ranges(self) -> bool:
        """Whether one instruction gives the larger of two floats, zeros told apart."""
        return self.vector_bits == 512 and "+avx512dq" in self.features.split(",")

    @property
    def identity(self) -> str:
        """Part of the key of object code kept on disk."""
        version = ".".join(map(str, llvm.llvm_version_info))
        return f"{self.triple} {self.cpu} {self.features} llvm {version} llvmlite {llvmlite.__version__}"


_BASE = (
    "+64bit,+avx,+avx2,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+f16c,+fma,+fxsr,+lzcnt,+mmx,+movbe,+popcnt,+sahf,+sse,+sse2,"
    "+sse3,+sse4.1,+sse4.2,+ssse3,+xsave"
)
_WIDE = "+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl"
TARGETS = (
    Host("x86_64-unknown-linux-gnu", "x86-64-v4", f"{_BASE},{_WIDE}"),
    Host("x86_64-unknown-linux-gnu", "x86-64-v3", _BASE),
)
"""The levels of the System V ABI for x86-64, the best first."""


def runs(target: Host, on: Host) -> bool:
    """Whether code for ``target`` runs there."""
    return target.triple == on.triple and set(target.features.split(",")) <= set(on.features.split(","))


_instead: Host | None = None


def host() -> Host:
    """The processor that code is made for: what ``config.cpu_target`` says when it is first asked for, but within
    ``made_for``."""
    return _instead or _wanted()


@contextlib.contextmanager
def made_for(other: Host) -> Generator[None]:
    """Texts and object code are those for another processor meanwhile, in all threads."""
    global _instead
    _instead, before = other, _instead
    try:
        yield
    finally:
        _instead = before


@functools.cache
def _wanted() -> Host:
    """Raises:
    ValueError: ``config.cpu_target`` is unknown, or its code doesn't run here.
    """
    name, here = cpu_target(), this()
    if not name:
        return here
    known = {target.cpu: target for target in TARGETS}
    if name not in known:
        raise ValueError(f"POLYAX_CPU_TARGET={name!r} is none of {', '.join(known)}; unset, code is for this processor")
    if not runs(known[name], here):
        lacks = sorted(set(known[name].features.split(",")) - set(here.features.split(","))) or [here.triple]
        raise ValueError(f"POLYAX_CPU_TARGET={name}: this processor ({here.cpu}) lacks {', '.join(lacks)}; unset it")
    return known[name]


@functools.cache
def this() -> Host:
    """This processor.

    Starts LLVM, for the whole process without strength reduction: it takes a third of the time that object code does,
    and gains nothing in loops over arrays, since the processor's addresses are a base and a scaled index.

    Without the instructions that AMD calls SSE4a as well, which have no form for vectors of 256 bits: one among these
    takes as long as 150 others.
    """
    llvm.set_option("polyax", "--disable-lsr")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    features["sse4a"] = False
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten())
