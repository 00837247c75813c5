"""The contract for those who write plugins: every name that a backend, a lowering or a command needs from the core.

What is here is kept from one minor version of ``API`` to the next; every other module of ``polyax`` that isn't
JAX's may change. ``polyax_kernels.api`` is the same for backends that are made of kernels.

>>> from polyax import backend
>>> backend.API
(1, 0)
"""

from __future__ import annotations

from polyax.commands import UsageError
from polyax.control.decomposition import decomposition
from polyax.engines.host import LIBRARY, on_host
from polyax.engines.parts import ProgramPart, partition
from polyax.engines.rewriting import decompose, inline_calls
from polyax.ir.aval import ShapedArray
from polyax.ir.blame import about as blame
from polyax.ir.check import check_jaxpr
from polyax.ir.config import config
from polyax.ir.errors import Disagreement, InternalError, NoLowering, PluginError
from polyax.ir.flags import Flag
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, last_uses, sub_jaxprs, walk_eqns
from polyax.ir.primitive import PRIMITIVES, Primitive
from polyax.ir.source import Source
from polyax.reference.interpreter import called, run_on_host
from polyax.runtime.contract.backend import (
    API,
    Backend,
    BackendSpec,
    Buffer,
    ChainLink,
    CompileOptions,
    Device,
    Executable,
    Meaning,
    Owner,
    Queue,
    Token,
)
from polyax.runtime.contract.cache import DiskCache, cache_root, why_no_cache
from polyax.runtime.contract.calls import CallKind, LeafKind, NativeCall, later
from polyax.runtime.contract.collectives import OPERATIONS, Axes, Group
from polyax.runtime.contract.hooks import (
    Chosen,
    Command,
    CompileEvent,
    FusionPass,
    HookError,
    Lowering,
    Offer,
    WhyNot,
    hookimpl,
)
from polyax.runtime.contract.host_arrays import HostArrayBackend, HostArrayExecutable
from polyax.runtime.contract.host_devices import host_device_count, host_devices
from polyax.runtime.contract.listing import Line, Listing, flatten
from polyax.runtime.contract.processes import Alone, ProcessGroup, ProcessSpec, Transfer, Wanted
from polyax.runtime.contract.queue import HELP_COST, INLINE_COST, HostBuffer, HostQueue, Task
from polyax.runtime.contract.report import (
    BufferReport,
    Decision,
    KernelReport,
    ProgramReport,
    Report,
    Snapshot,
)
from polyax.runtime.plugins.registry import registry
from polyax.trace.recording import trace_to_jaxpr

__all__ = [
    "API", "HELP_COST", "INLINE_COST", "LIBRARY", "OPERATIONS", "PRIMITIVES", "Alone", "Atom", "Axes",
    "Backend", "BackendSpec", "Buffer", "BufferReport", "CallKind", "ChainLink", "Chosen", "ClosedJaxpr",
    "Command", "CompileEvent", "CompileOptions", "Decision", "Device", "Disagreement", "DiskCache", "Eqn",
    "Executable", "Flag", "FusionPass", "Group", "HookError", "HostArrayBackend", "HostArrayExecutable",
    "HostBuffer", "HostQueue", "InternalError", "Jaxpr", "KernelReport", "LeafKind", "Line", "Listing",
    "Literal", "Lowering", "Meaning", "NativeCall", "NoLowering", "Offer", "Owner", "PluginError", "Primitive",
    "ProcessGroup", "ProcessSpec", "ProgramPart", "ProgramReport", "Queue", "Report", "ShapedArray", "Snapshot",
    "Source", "Task", "Token", "Transfer", "UsageError", "Var", "Wanted", "WhyNot", "blame", "cache_root", "called",
    "check_jaxpr", "config", "decompose", "decomposition", "flatten", "hookimpl", "host_device_count",
    "host_devices", "inline_calls", "last_uses", "later", "on_host", "partition", "registry", "run_on_host",
    "sub_jaxprs", "trace_to_jaxpr", "walk_eqns", "why_no_cache",
]  # fmt: skip
