"""The contract between the core and a backend. Everything that the core asks of a device is on this page.

A backend turns a jaxpr into an ``Executable`` and moves arrays between the host and its devices. How it does so is
its own business; most derive from ``polyax_kernels.KernelBackend``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.blame import expected_reason
from polyax.ir.effects import NO_EFFECTS, Effects
from polyax.ir.jaxpr import ClosedJaxpr, Eqn
from polyax.ir.primitive import Primitive
from polyax.meshes import memories
from polyax.meshes.memories import DeviceMemory
from polyax.runtime.contract.calls import CallKind, NativeCall
from polyax.runtime.contract.collectives import Axes, Group
from polyax.runtime.contract.processes import ProcessGroup
from polyax.runtime.contract.report import BufferReport, Decision, KernelReport, Report, Snapshot
from polyax.runtime.contract.spanning import SpanningGroup
from polyax.runtime.contract.whose import NONE, Owner, ask, broken, tell

__all__ = [
    "API", "Backend", "BackendSpec", "Buffer", "BufferReport", "CallKind", "CompileOptions", "Decision",
    "Device", "Executable", "KernelReport", "Meaning", "Owner", "Queue", "Report", "Seat", "Snapshot", "Token",
]  # fmt: skip

API = (1, 0)
"""Version of the contract with plugins: of ``polyax.backend``, ``polyax_kernels.api`` and the hooks. A minor version
adds names, parameters with defaults and methods that have a default; a major one may change anything."""


@dataclass(frozen=True)
class BackendSpec:
    """What a plugin's ``polyax_backends`` hook yields. Making one imports no toolkit."""

    name: str
    """The platform's name in ``POLYAX_PLATFORMS``."""
    probe: Callable[[], str | None]
    """None: usable. Else the reason, shown to the user as it stands."""
    open: Callable[[], Backend]
    """Makes the backend; may import the toolkit. Called at most once in a process."""
    priority: int | Callable[[], int] = 0
    """The usable backend with the highest one is the default: reference -100, cpu 0, cuda 20. A function is asked once
    the probe said that it can be used: OpenCL's GPUs have 10, a processor through OpenCL has -10."""
    requires: str | None = None
    """The versions of ``API`` that it was written for, such as ``>=1,<2``: it is refused with others. None: as its
    plugin says in ``polyax_requires``."""
    note: str = ""
    """What users should know of the platform before they rely on it; ``polyax info`` shows it."""


class Seat:
    """Where an array is, and whether it was put there by name: two for each device, told apart by ``is``. Arrays that
    weren't follow those that were, and otherwise go to the default device."""

    __slots__ = ("committed", "device")

    def __init__(self, device: Device, committed: bool) -> None:
        self.device = device
        self.committed = committed


class Device:
    """One device. Printed as in JAX: ``CpuDevice(id=0)``."""

    def __init__(
        self,
        backend: Backend,
        id: int,
        *,
        kind: str,
        queue: Queue | None = None,
        process_index: int = 0,
        local_hardware_id: int | None = None,
        is_addressable: bool = True,
    ) -> None:
        self.backend = backend
        self.id = id
        self.free, self.chosen = Seat(self, False), Seat(self, True)
        """Where arrays are that happen to be here, and those that somebody wants here."""
        self.device_kind = kind
        self.queue: Queue = AT_ONCE if queue is None else queue
        """What launches here are given: without one, work runs in the thread that asks for it."""
        self.process_index = process_index
        self.local_hardware_id = id if local_hardware_id is None else local_hardware_id
        """Its number among the devices of its process."""
        self.is_addressable = is_addressable
        """Whether it belongs to this process; what is on another process's device can't be had here."""

    @property
    def platform(self) -> str:
        return self.backend.name

    @property
    def client(self) -> Backend:
        """The backend, as JAX calls it."""
        return self.backend

    @property
    def host_id(self) -> int:
        """The process that it belongs to, as JAX called it."""
        return self.process_index

    def memory_stats(self) -> dict[str, int] | None:
        what = "a dict of numbers or None"
        stats = ask(self, self.backend, "memory_stats", self, kinds=(dict, NONE), what=what)
        if not all(isinstance(n, Real) for n in (stats or {}).values()):
            raise broken(self, f"memory_stats gave {stats!r}, not {what}")
        return stats

    def addressable_memories(self) -> list[DeviceMemory]:
        """The memories that it can put arrays into, its own first."""
        return memories.memories(self)

    def default_memory(self) -> DeviceMemory:
        return self.addressable_memories()[0]

    def memory(self, kind: str) -> DeviceMemory:
        """Its memory of this kind.

        Raises:
          ValueError: it has none.
        """
        kind = memories.checked_kind(self, kind)
        return next(m for m in self.addressable_memories() if m.kind == kind)

    def __repr__(self) -> str:
        name = "".join(part.capitalize() for part in self.platform.split("_"))
        return f"{name}Device(id={self.id})"

    def _repr_html_(self) -> str:
        """What notebooks show: the name as in programs, what it is, and its memory if that's known."""
        from html import escape  # only they need it

        from polyax.runtime.contract.text import size

        memory = self.memory_stats() or {}
        sizes = [f"{name.replace('_', ' ')} {size(n)}" for name, n in memory.items() if name.startswith("bytes_")]
        return f"<code>{escape(repr(self))}</code> {escape(', '.join([self.device_kind, *sizes]))}"

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"


class Buffer(ABC):
    """Memory on a device that holds one array, row-major and dense. It may still be in the making."""

    __slots__ = ()

    @property
    @abstractmethod
    def nbytes(self) -> int | None:
        """How many bytes it has room for, at least those of its array; None while that isn't known."""

    @abstractmethod
    def ready(self) -> bool:
        """Whether the contents are there, or the error is."""

    @abstractmethod
    def wait(self) -> None:
        """Returns when the contents are there; raises the error of the computation that was to produce them."""

    def share(self) -> None:
        """From now on several arrays have it: nobody writes to it any more. Nothing, where nobody ever does."""
        return

    def awaits(self) -> Token | None:
        """What work that reads it has to wait for; None, if the contents are there, as far as queues need to know."""
        return None if self.ready() else _Awaited(self)

    def address(self) -> int:
        """Where it is, for those who can use that.

        Raises:
          NotImplementedError: the device doesn't tell.
        """
        raise NotImplementedError(f"{type(self).__name__} doesn't tell where it is")


class Token(ABC):
    """Effects of a program that are still to come; kept until they are over. ``queue.Task`` is one."""

    __slots__ = ()
    done: bool
    """Whether they are over."""
    error: BaseException | None
    """What they raised, once they are over."""
    told: bool
    """Whether somebody got that error: then ``effects_barrier`` doesn't raise it again."""

    @abstractmethod
    def wait(self) -> None:
        """Returns when they are over; raises ``error``, and sets ``told``, if there is one."""


class _Awaited(Token):
    """The contents of a buffer that tells whether they are there and no more."""

    __slots__ = ("buffer", "error", "told")

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.error: BaseException | None = None
        self.told = False

    @property
    def done(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]  # it is asked for
        return self.buffer.ready()

    def wait(self) -> None:
        try:
            self.buffer.wait()
        except BaseException as e:
            self.error, self.told = e, True
            raise


@runtime_checkable
class Queue(Protocol):
    """Where a device's work runs, in order. A launch is given that of its device, or one that stands for it, of which
    it may ask no more than is said here. ``HostQueue`` is one.

    >>> from polyax.backend import HostQueue
    >>> HostQueue("mine").run(lambda: print("done"), [], 0)
    done
    """

    def run(self, work: Callable[[], None], inputs: Sequence[Buffer], cost: int) -> Token | None:
        """Runs ``work`` after everything before it and after what ``inputs`` wait for; ``cost``: its scalar operations
        or bytes. None, if it has run already: an error is raised then; else what tells when it is over."""
        ...

    def synchronize(self) -> None:
        """Returns when everything that came before has ended; its errors stay with those who ask for results."""
        ...


class _AtOnce(Queue):
    """The queue of devices that have none: nothing is ever in it."""

    def run(self, work: Callable[[], None], inputs: Sequence[Buffer], cost: int) -> None:
        for b in inputs:
            b.wait()
        work()

    def synchronize(self) -> None:
        return


AT_ONCE = _AtOnce()


@dataclass(frozen=True)
class CompileOptions:
    """How an executable is to be made."""

    device: Device
    donated: tuple[bool, ...] = ()
    """For each constant and input, unless there is none: whether its buffer may be reused for results."""
    effects: Effects = NO_EFFECTS
    name: str = "jit"
    eager: bool = False
    """One primitive, dispatched on its own: worth compiling once for all shapes."""
    members: int = 1
    """How many devices run it side by side: with several there is less need to divide the work of one."""
    stages: bool = False
    """Somebody wants to see how the program is compiled: reports keep it, and what each phase made of it."""


class Meaning(NamedTuple):
    """What a program computes once one part of a compiler has done its work."""

    plugin: str
    """Who brings that part, as errors call it."""
    part: str
    """"its lowering of sin", "its fuser 'mine'"."""
    results: Sequence[np.ndarray] | Exception | None
    """Or why nothing can be computed of it; None, if the device alone can: it is guilty if all others are right."""
    remedy: str = ""
    """What the user can do if it is wrong."""


class ChainLink(NamedTuple):
    """A program in a chain of programs, with the numbers of the values that it is given."""

    executable: Executable
    operands: Sequence[int]


class Executable(ABC):
    """A compiled program for one device."""

    @abstractmethod
    def launch(self, buffers: Sequence[Buffer], queue: Queue) -> tuple[list[Buffer], Token | None]:
        """Starts the program on ``queue`` and returns at once with the buffers of its results.

        ``buffers``: the jaxpr's constants, then its inputs, all on the queue's device. An error in the computation
        surfaces in ``Buffer.wait`` of its results. The second result is None unless the program has effects that are
        still to come: then a ``Token``.
        """

    def launch_members(self, members: Sequence[Sequence[Buffer]], queue: Queue, axes: Axes) -> Any:
        """Starts the program for all members of a group at once, each with its buffers, if ``takes_turns``. The results
        of each, and a token for all, as those of ``launch``."""
        raise NotImplementedError

    def native_call(self, kind: CallKind) -> NativeCall | None:
        """A function ``(args, kwargs) -> results`` for calls of one kind, that does at once what would otherwise be
        done in Python around ``launch``: it compares the arguments with what they should be, gets their buffers, runs
        the program, and makes arrays of its results. NotImplemented, with nothing changed, means that the call isn't of
        this kind or can't run at once: it goes the usual way then. None, if calls of this kind gain nothing by it;
        ``later``, if there is nothing to call yet: no call waits for that.

        Errors of the program are raised. While a trace is taken, nothing in Python tells of such a call: the function
        notes it, and the backend tells of it as ``kind.told`` says (``Telling.called``).

        Asked only for programs of which nobody wants to know more than the results: none with effects, none that are
        searched for NaNs.
        """
        return None

    def chained(
        self, links: Sequence[ChainLink], inputs: Sequence[ShapedArray], results: Sequence[int]
    ) -> Executable | None:
        """One executable that does what those of ``links``, all of this device, do one after the other, to the last
        bit. Values are counted: ``inputs``, then the results of each link; ``results`` are those that are wanted. None,
        if nothing is gained by it."""
        return None

    def progress(self) -> str:
        """What a launch is at that doesn't end, for those who wait; "" if that isn't known. Called in any thread."""
        return ""

    takes_turns = False
    """Whether this executable can run for all members of a group in one thread, none waiting for another."""

    @abstractmethod
    def report(self) -> Report: ...


class Backend(ABC):
    """All that the core needs of a platform."""

    name: str
    in_host_memory = True
    """Whether arrays lie where NumPy sees them: then reading one is no transfer."""
    memory_kinds: Sequence[str] | None = None
    """The kinds of memory that its devices address, their own first: ``("device", "pinned_host")``. Programs may be
    given buffers in any of them. None: all that JAX knows, where arrays lie in the host's memory, else the first."""
    index_dtype: np.dtype = np.dtype("int64")
    """What counts the elements of an array here: int64, or int32. Arrays with more of them are refused."""
    runtime_type = "polyax"
    """Who runs programs, for libraries that ask ``device.client``."""
    platform_version = ""
    """Of what the platform's programs are made with, if that has one, for the same libraries."""
    owner: Owner | None = None
    """Who brings it; the registry says so when it is opened."""

    @property
    def platform(self) -> str:
        """The name, as JAX calls it."""
        return self.name

    @abstractmethod
    def devices(self) -> Sequence[Device]: ...

    @abstractmethod
    def to_device(self, host: np.ndarray, device: Device) -> Buffer:
        """Copies ``host`` (C-contiguous, canonical dtype); the caller may change it afterwards.

        Raises:
          TypeError: the device lacks the dtype.
        """

    def adopt(self, host: np.ndarray, device: Device) -> Buffer | None:
        """A buffer whose memory is that of ``host`` (C-contiguous, canonical dtype), which is kept and never written
        to; None if this device doesn't work on the host's memory, or needs it to lie otherwise."""
        return None

    @abstractmethod
    def to_host(self, buffer: Buffer, aval: ShapedArray) -> np.ndarray:
        """Waits for ``buffer`` and returns its contents; read-only where memory is shared."""

    @abstractmethod
    def compile(self, jaxpr: ClosedJaxpr, options: CompileOptions) -> Executable:
        """The constants of ``jaxpr`` are passed as arguments, before the inputs; their values must not be baked in."""

    def meanings(self, jaxpr: ClosedJaxpr, options: CompileOptions, inputs: Sequence[np.ndarray]) -> Sequence[Meaning]:
        """For ``config.debug_backend``: what a program computes for its constants and ``inputs`` after each part of the
        compiler has done its work, in that order, worked out without the device. The first that is wrong names whose
        fault it is; if none is, it's this backend's. Empty, if nothing but the backend changes a program."""
        return ()

    @abstractmethod
    def synchronize(self, device: Device) -> None:
        """Returns when everything that was started on ``device`` has ended."""

    def copy(self, buffer: Buffer, aval: ShapedArray, source: Device, target: Device) -> Buffer:
        """A copy of ``buffer`` on ``target``, a device of this backend; ``source`` may be anybody's."""
        try:
            host = source.backend.to_host(buffer, aval)
        except BaseException as e:
            tell(e, source, f"an array of type {aval} was read from")
            raise
        return self.to_device(host, target)

    def into_memory(self, buffer: Buffer, aval: ShapedArray, device: Device, kind: str) -> Buffer:
        """What is in ``buffer`` in another of the device's ``memory_kinds``: itself, where they are one memory."""
        buffer.share()
        return buffer

    def collectives(self, devices: Sequence[Device], axes: Axes, link: ProcessGroup | None = None) -> Group:
        """How one program's runs on ``devices`` meet in collectives along ``axes``: through the host. Asked per run.

        ``link``: the connection of their processes, if these are several.
        """
        if link is None:
            return Group(axes)
        return SpanningGroup(axes, [link.ranks.index(d.process_index) for d in devices], link)

    def twin(self, device: Device) -> Device:
        """A device for which programs are compiled that ``device`` can launch as well, on its own queue and memory:
        itself, or the first of those that are alike."""
        return device

    def opened(self) -> None:
        """Called once, when it can be used: time to load what its first program needs."""
        return

    def close(self) -> None:
        """Called once, when the process ends and everything on its devices has: time to give back what the system
        doesn't take back by itself. Nothing is asked of it afterwards."""
        return

    def memory_stats(self, device: Device) -> dict[str, int] | None:
        return None

    def why_no_dtype(self, dtype: Any) -> str | None:
        """The reason why arrays of ``dtype`` can't live here, if so."""
        return None

    def why_not(
        self,
        primitive: Primitive,
        avals: Sequence[ShapedArray],
        outs: Sequence[ShapedArray],
        params: Mapping[str, Any],
    ) -> str | None:
        """The reason why this backend doesn't run a primitive on operands and results of these types, if so. What the
        primitive is made of is looked at then, and after that the host."""
        return None

    def declines(self, eqn: Eqn) -> str | None:
        """``why_not`` of an equation: what ``decompose`` and ``partition`` ask. Engines that take an equation only if
        an operand is a constant say so here.

        Raises:
          PluginError: the answer is no reason.
        """
        avals, outs = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
        reason = self.why_not(eqn.primitive, avals, outs, eqn.params)
        return expected_reason(reason, eqn, "why_not of the backend gave")

    def declines_any(self) -> bool:
        """Whether there is anything to ask."""
        kind = type(self)
        return (kind.why_not, kind.declines) != (Backend.why_not, Backend.declines)
