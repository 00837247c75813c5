"""Ahead of time: ``jit(f).trace(...)`` gives the program, ``.lower()`` takes it to a device, ``.compile()`` builds it.

Each stage knows the structures of arguments and results; the last is called with arguments of these types alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from polyax.api.ahead import struct
from polyax.api.shardings import same
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.dtypes import DType
from polyax.ir.errors import PolyaxRuntimeError
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.meshes.axes import AbstractMesh
from polyax.meshes.formats import Format, row_by_row
from polyax.meshes.sharding import Sharding
from polyax.runtime.arrays.array import Array, is_concrete
from polyax.runtime.contract import edge
from polyax.runtime.contract.backend import Device, Seat
from polyax.runtime.contract.report import Report
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.runtime.plugins.default_device import default_device_now
from polyax.runtime.running.compiling import names_of
from polyax.runtime.running.meshed import no_devices
from polyax.runtime.running.staged import Staged
from polyax.trace.flat import leaf_names
from polyax.trace.paths import equality_errors_pytreedef, keystr
from polyax.trace.tracer import Tracer
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_structure, tree_unflatten

CompilerOptions = dict[str, Any]


@runtime_checkable
class Wrapped(Protocol):
    """What ``jit`` returns: a function with stages."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def trace(self, *args: Any, **kwargs: Any) -> Traced: ...

    def lower(self, *args: Any, **kwargs: Any) -> Lowered: ...


@dataclass(frozen=True)
class ArgInfo:
    """An argument's type, and whether its memory may be reused."""

    _aval: ShapedArray
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self._aval.shape

    @property
    def dtype(self) -> DType:
        return self._aval.dtype


@dataclass(frozen=True)
class Parts:
    """What all stages share."""

    staged: Staged
    fun: Callable[..., Any]
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    options: CompilerOptions | None = None
    asked: tuple[Sharding | None, ...] = ()
    """How results were asked to lie, if that was."""

    @property
    def jaxpr(self) -> ClosedJaxpr:
        return self.staged.closed

    @property
    def donated(self) -> tuple[bool, ...]:
        return self.staged.donated


def check_options(options: CompilerOptions | None) -> None:
    """Raises unless all are XLA's, by their names: programs that tune it run as they are."""
    for name in options or ():
        if not str(name).startswith("xla_"):
            raise PolyaxRuntimeError(
                f"INVALID_ARGUMENT: No such compile option: {name!r}. Those of XLA, xla_..., are accepted, and change "
                "nothing; `python -m polyax info` lists polyax's own settings."
            )


class _Stage:
    """What all stages know: the program, and the structures of arguments and results."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.fun_name = parts.staged.name
        self.in_tree = parts.in_tree
        """The structure of ``(args, kwargs)``, static arguments left out."""
        self.out_tree = parts.out_tree
        self.device = parts.staged.place
        """The device that the program runs on, or the mesh, maybe an abstract one."""

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, a pair of positional and named ones."""
        return tree_unflatten(self.in_tree, self._parts.jaxpr.in_avals)

    @property
    def out_avals(self) -> Any:
        """The types of the results."""
        return tree_unflatten(self.out_tree, self._parts.jaxpr.out_avals)

    @property
    def args_info(self) -> Any:
        """The arguments as ``ArgInfo``."""
        avals = self._parts.jaxpr.in_avals
        donated = self._parts.donated or (False,) * len(avals)
        return tree_unflatten(self.in_tree, map(ArgInfo, avals, donated))

    @property
    def out_info(self) -> Any:
        """The results as ``ShapeDtypeStruct``; what is lowered tells weak types from others no more."""
        avals = [a.update(weak_type=False) for a in self._parts.jaxpr.out_avals]
        return self._structs(avals)

    def _structs(self, avals: Sequence[ShapedArray]) -> Any:
        asked = self._out_shardings() or [None] * len(avals)
        return tree_unflatten(self.out_tree, map(struct, avals, asked))

    def _out_shardings(self) -> Sequence[Sharding | None]:
        """What is known of how results will lie, besides what their types tell."""
        return self._parts.asked

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The numbers of the donated leaves of the arguments."""
        return tuple(n for n, d in enumerate(self._parts.donated) if d)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fun_name} on {self.device})"


class Traced(_Stage):
    """A function's program for some types of arguments: ``jaxpr``."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.jaxpr = parts.jaxpr

    @property
    def out_info(self) -> Any:
        """The results as ``ShapeDtypeStruct``."""
        return self._structs(self._parts.jaxpr.out_avals)

    @api_boundary
    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """The program for its device. It is the same for all ``lowering_platforms``; ``compile`` makes of it what runs
        on that device, which must be of one of them.

        Raises:
          ValueError: it is for a mesh without devices, and no platforms are named.
        """
        if lowering_platforms is None and isinstance(self.device, AbstractMesh):
            raise no_devices(self.device)
        return Lowered(self._parts, lowering_platforms)


class Lowered(_Stage):
    """A program that is ready to be compiled for its device."""

    def __init__(self, parts: Parts, platforms: Sequence[str] | None = None) -> None:
        super().__init__(parts)
        self._platforms = platforms

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text: a jaxpr, with the user's lines if ``debug_info``. Compiled programs show their kernels.

        Raises:
          ValueError: there is no such dialect.
        """
        if dialect not in (None, "jaxpr"):
            raise ValueError(f"unknown dialect: {dialect}. Lowered programs are written in 'jaxpr'.")
        text = str(self._parts.jaxpr)
        if not debug_info:
            return text
        return text + "".join(f"\n# {e.primitive}: {e.source}" for e in self._parts.jaxpr.eqns)

    def compiler_ir(self, dialect: str | None = None) -> ClosedJaxpr:
        """The program itself, a ``ClosedJaxpr``."""
        if dialect not in (None, "jaxpr"):
            raise ValueError(f"unknown dialect: {dialect}. Lowered programs are written in 'jaxpr'.")
        return self._parts.jaxpr

    def cost_analysis(self) -> dict[str, float]:
        """As that of the compiled program; of one without devices as if it ran on the default one."""
        staged = self._parts.staged
        here = replace(staged, where=default_device_now()) if isinstance(self.device, AbstractMesh) else staged
        return Compiled(replace(self._parts, staged=here)).cost_analysis()

    @api_boundary
    def compile(
        self, compiler_options: CompilerOptions | None = None, *, device_assignment: Sequence[Device] | None = None
    ) -> Compiled:
        """Compiles the program.

        Args:
          compiler_options: settings of XLA, which change nothing here.
          device_assignment: the devices that it was lowered for, and nothing else; those that it is to run on, if it
            was lowered for a mesh that has none.

        Raises:
          NoLowering: the device can't run it; the text says why.
          JaxRuntimeError: there is no such option.
          RuntimeError: neither the arguments nor ``device_assignment`` say where it is to run.
          ValueError: it was lowered for other platforms than the device's, or other devices.
        """
        staged = self._staged_on(device_assignment)
        where = staged.devices[0]
        if self._platforms is not None and not set(self._platforms).intersection(names_of(where)):
            raise ValueError(
                f"{self.fun_name} was lowered for {', '.join(self._platforms)}, and is to run on {where}, which is of "
                f"platform {where.platform}: name that in lowering_platforms, or choose with jit(f, device=...)"
            )
        check_options(self._parts.options)
        check_options(compiler_options)
        return Compiled(replace(self._parts, staged=staged))

    def _staged_on(self, devices: Sequence[Device] | None) -> Staged:
        """The program on these devices, which are those that it was lowered for if there were some."""
        staged = self._parts.staged
        if isinstance(staged.place, AbstractMesh):
            if devices is None:
                raise RuntimeError(
                    "device_assignment cannot be `None` during compilation. Please pass a tuple of devices to "
                    "`.compile(device_assignment=)`"
                )
            return staged.on(devices)
        found = staged.devices
        if devices is not None and tuple(devices) != found:
            platform = found[0].platform.upper()
            given, wanted = ([d.id for d in some] for some in (devices, found))
            raise ValueError(
                "device_assignment passed to `.compile` must match the device_assignment calculated from array "
                f"shardings and out_shardings. Got device ids passed to compile {given} on platform {platform} and "
                f"devices ids calculated from array shardings and out_shardings {wanted} on platform {platform}"
            )
        return staged


class Compiled(_Stage):
    """A compiled program: called with arguments of the types that it was compiled for, without the static ones."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.program = parts.staged.program
        self._entry = parts.staged.entry(parts.out_tree, None)
        self._avals = parts.jaxpr.in_avals
        self._seats = {self.device.free, self.device.chosen} if isinstance(self.device, Device) else set[Seat]()
        self._plain = self.in_tree == tree_structure(((0,) * len(self._avals), {}))

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        here = [x.aval for x in args if type(x) is Array and x._seat in self._seats]
        if self._plain and not kwargs and here == self._avals and len(here) == len(args):
            return self._entry(args)
        return self._checked_call(args, kwargs)

    def _out_shardings(self) -> Sequence[Sharding | None]:
        return self._parts.staged.out_shardings

    def _checked_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        leaves, tree = tree_flatten((args, kwargs))
        if tree != self.in_tree:
            raise self._other_structure(tree)
        for x in leaves:
            if isinstance(x, Tracer):
                raise TypeError(
                    "Cannot apply JAX transformations to a function lowered and compiled for a particular signature. "
                    f"Detected argument of Tracer type {type(x)}, in a call of {self.fun_name}."
                )
        if [x.aval if type(x) is Array else aval_of(x) for x in leaves] != self._avals:
            self._check(leaves)
        self._check_places(leaves)
        return self._entry(leaves)

    def _check_places(self, leaves: Sequence[Any]) -> None:
        """Raises unless arrays that were put somewhere by name lie as they have to."""
        required = self._parts.staged.in_shardings
        differing = [
            f"Argument {name} with shape {x.aval.str_short()}:\n"
            f"  Passed sharding: {x.sharding}\n  Required sharding: {s}"
            for name, x, s in zip(self._names(), leaves, required, strict=True)
            if is_concrete(x) and x.committed and not same(x.sharding, s, x.aval)
        ]
        if differing:
            raise ValueError(
                "Computation was compiled for input shardings that disagree with the shardings of arguments passed to "
                f"it. Here are the {len(differing)} mismatches:\n"
                + "\n".join(differing)
                + "\nMove them with device_put."
            )

    call = __call__

    def _other_structure(self, tree: PyTreeDef) -> TypeError:
        lines = [
            f"    * at {('args', 'kwargs')[path[0].idx]}{keystr(path[1:])}, seen {seen} but now given {given}, so {why}"
            for path, seen, given, why in equality_errors_pytreedef(self.in_tree, tree)
        ]
        return TypeError(
            "Function compiled with input pytree does not match the input pytree it was called with. There are "
            f"{len(lines)} mismatches, including:\n" + "\n".join(lines)
        )

    def _names(self) -> list[str]:
        return leaf_names(self._parts.fun, self.in_tree)

    def _check(self, leaves: Sequence[Any]) -> None:
        """Raises unless shapes and dtypes are those of the program; weak types may differ."""
        differing = [
            f"Argument '{name}' compiled with {w.str_short()} and called with {aval_of(x).str_short()}"
            for name, w, x in zip(self._names(), self._avals, leaves, strict=True)
            if (w.shape, w.dtype) != (aval_of(x).shape, aval_of(x).dtype)
        ]
        if differing:
            raise TypeError(
                "Argument types differ from the types for which this computation was compiled. Perhaps you are calling "
                "the compiled executable with a different enable_x64 mode than when it was AOT compiled? The "
                "mismatches are:\n" + "\n".join(differing)
            )

    @property
    def input_shardings(self) -> Any:
        """Where the arguments have to be; None for those that the program doesn't take."""
        staged = self._parts.staged
        places = [s if t else None for s, t in zip(staged.in_shardings, staged.taken, strict=True)]
        return tree_unflatten(self.in_tree, places)

    @property
    def output_shardings(self) -> Any:
        """Where the results will be."""
        return tree_unflatten(self.out_tree, self._parts.staged.out_shardings)

    @property
    def input_formats(self) -> Any:
        """How the arguments have to lie; of those that the program doesn't take, nothing is said."""
        staged = self._parts.staged
        formats = _formats(staged.in_shardings, staged.closed.in_avals)
        found = [f if t else Format() for f, t in zip(formats, staged.taken, strict=True)]
        return tree_unflatten(self.in_tree, found)

    @property
    def output_formats(self) -> Any:
        """How the results will lie."""
        staged = self._parts.staged
        return tree_unflatten(self.out_tree, _formats(staged.out_shardings, staged.closed.out_avals))

    @property
    def report(self) -> Report:
        """What the program consists of."""
        return edge.report(self.program.executable, self.program.device, self.program.name)

    def as_text(self) -> str:
        """The programs of the kernels, as the backend writes them."""
        return "\n".join(k.source or f"// {k.name}: a {k.kind} of {k.fused}" for k in self.report.kernels)

    def cost_analysis(self) -> dict[str, float]:
        """Scalar operations (``flops``) and bytes moved (``bytes accessed``) of one call, as far as they are known."""
        report = self.report
        return {"flops": float(report.flops), "bytes accessed": float(report.bytes_moved)}

    def memory_analysis(self) -> MemoryAnalysis:
        """The bytes that a call uses."""
        closed, donated = self._parts.jaxpr, self._parts.donated
        return MemoryAnalysis(
            sum(a.nbytes for a, t in zip(closed.in_avals, self._parts.staged.taken, strict=True) if t),
            sum(a.nbytes for a in closed.out_avals),
            self.report.arena_bytes,
            sum(a.nbytes for a, d in zip(closed.in_avals, donated, strict=False) if d),
        )

    def runtime_executable(self) -> Any:
        """The backend's executable."""
        return self.program.executable


@dataclass(frozen=True)
class MemoryAnalysis:
    """The bytes that one call of a compiled program uses; ``alias``: of donated arguments, whose memory results may
    take over."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    alias_size_in_bytes: int


def _formats(shardings: Sequence[Sharding], avals: Sequence[ShapedArray]) -> list[Format]:
    return [Format(row_by_row(a.ndim), s) for s, a in zip(shardings, avals, strict=True)]
