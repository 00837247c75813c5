"""The machine: an engine, a store with one linear memory, and functions that are called in it.

A store runs one function at a time, whichever thread asks, and its memory grows between two of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import struct
import threading
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import wasmtime

from polyax.backend import DiskCache
from polyax_kernels.api.emitters import SCALARS
from polyax_kernels.api.host import Function
from polyax_wasm.emitter import FRAME

PAGE = 1 << 16
PAGES = 1 << 16
"""All that addresses of 32 bits reach."""
UNLIMITED = (1 << 31) - 1

_cache = DiskCache("wasm")


def _engine() -> wasmtime.Engine:
    """Multiplications with one rounding are the same everywhere; arrays stay where they are when the memory grows."""
    config = wasmtime.Config()
    config.wasm_relaxed_simd_deterministic = True
    config.memory_may_move = False
    return wasmtime.Engine(config)


class WasmMachine:
    """``most``: pages that its memory may have."""

    def __init__(self, most: int = PAGES) -> None:
        self.engine = _engine()
        self.store = wasmtime.Store(self.engine)
        self.store.set_limits(instances=UNLIMITED)
        self.lock = threading.RLock()
        """Held by who uses the store."""
        self.memory = wasmtime.Memory(self.store, wasmtime.MemoryType(wasmtime.Limits(FRAME // PAGE, most)))
        self.base = ctypes.addressof(self.memory.data_ptr(self.store).contents)
        self.frame = (ctypes.c_ubyte * FRAME).from_address(self.base)
        self.most = most * PAGE
        self.hosts: dict[str, wasmtime.Func] = {}
        self.version = version("wasmtime")

    def grow(self, nbytes: int) -> int:
        """Adds ``nbytes``, rounded up to pages; how many those are.

        Raises:
          MemoryError: they are more than the memory may have.
        """
        with self.lock:
            size, pages = self.memory.data_len(self.store), -(-nbytes // PAGE)
            try:
                if size + pages * PAGE > self.most:
                    raise wasmtime.WasmtimeError("addresses end there")
                self.memory.grow(self.store, pages)
            except wasmtime.WasmtimeError as e:
                text = f"the linear memory has {size:,} bytes and can't grow by {nbytes:,} beyond {self.most:,} ({e})"
                raise MemoryError(text) from None
        return pages * PAGE

    def function(self, source: str) -> Function:
        """The kernel of a module, as a function of the host ABI."""
        module = self.compiled(source)
        with self.lock:
            imports = [self.given(x.name) for x in module.imports]
            exports: Any = wasmtime.Instance(self.store, module, imports).exports(self.store)
            run = exports["kernel"]

        def call(pointers: Any, scalars: Any, begin: int, end: int) -> None:
            words = [begin, end, *[pointer - self.base for pointer in pointers], *scalars]
            with self.lock:
                struct.pack_into(f"<{len(words)}q", self.frame, 0, *words)
                run(self.store)

        return call

    def compiled(self, source: str) -> wasmtime.Module:
        """From the disk, unless what is there is another engine's."""
        key = f"{self.version}\n{source}"
        if (code := _cache.get(key)) is not None:
            with contextlib.suppress(wasmtime.WasmtimeError):
                return wasmtime.Module.deserialize(self.engine, code)
        module = wasmtime.Module(self.engine, source)
        _cache.put(key, bytes(module.serialize()))
        return module

    def given(self, name: str | None) -> Any:
        """What a module imports: the memory, or a function that the host computes."""
        if name == "memory":
            return self.memory
        assert name is not None
        if name not in self.hosts:
            number = wasmtime.ValType.f64()
            kind = wasmtime.FuncType([number] * SCALARS[name].arity, [number])
            self.hosts[name] = wasmtime.Func(self.store, kind, _on_host(name))
        return self.hosts[name]


def _on_host(name: str) -> Callable[..., float]:
    def compute(*args: float) -> float:
        with np.errstate(all="ignore"):
            return float(SCALARS[name].numpy(*map(np.float64, args)))

    return compute
