"""Ahead of time: a function traced, lowered and compiled for given types, each step to be looked at.

``jit(f).trace(*args).lower().compile()``; what is compiled is called with arguments of these types alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.api.ahead import struct
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.runtime import dispatch
from polyax.runtime.backend import Device
from polyax.runtime.errors import api_boundary
from polyax.runtime.report import Report
from polyax.trace.paths import keystr, tree_leaves_with_path
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten


class _Stage:
    """What all stages know: the program, and the structures of arguments and results."""

    def __init__(
        self,
        closed: ClosedJaxpr,
        name: str,
        in_tree: PyTreeDef,
        out_tree: PyTreeDef,
        device: Device,
        donated: tuple[bool, ...],
    ) -> None:
        self.jaxpr = closed
        self.fun_name = name
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.device = device
        self.donated = donated

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, a pair of positional and named ones."""
        return tree_unflatten(self.in_tree, self.jaxpr.in_avals)

    @property
    def args_info(self) -> Any:
        """The arguments as ``ShapeDtypeStruct``."""
        return tree_unflatten(self.in_tree, map(struct, self.jaxpr.in_avals))

    @property
    def out_info(self) -> Any:
        """The results as ``ShapeDtypeStruct``."""
        return tree_unflatten(self.out_tree, map(struct, self.jaxpr.out_avals))

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The numbers of the donated leaves of the arguments."""
        return tuple(n for n, d in enumerate(self.donated) if d)

    def _parts(self) -> tuple[Any, ...]:
        return self.jaxpr, self.fun_name, self.in_tree, self.out_tree, self.device, self.donated

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fun_name} on {self.device})"


class Traced(_Stage):
    """A function's program for some types of arguments: ``jaxpr``."""

    @api_boundary
    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """The program for its device. ``lowering_platforms`` must be None or name that device's platform."""
        if lowering_platforms is not None and tuple(lowering_platforms) != (self.device.platform,):
            raise NotImplementedError(
                f"lower: programs are lowered for the device that they run on, which is {self.device}, not for "
                f"{tuple(lowering_platforms)}; choose another one with jit(f, device=...)"
            )
        return Lowered(*self._parts())


class Lowered(_Stage):
    """A program that is ready to be compiled for its device."""

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text: a jaxpr. Compiled programs show their kernels."""
        if dialect not in (None, "jaxpr"):
            raise ValueError(f"as_text: the dialect of lowered programs is 'jaxpr', got {dialect!r}")
        return str(self.jaxpr)

    def cost_analysis(self) -> dict[str, float]:
        """As that of the compiled program."""
        return self.compile().cost_analysis()

    @api_boundary
    def compile(self, compiler_options: dict[str, Any] | None = None) -> Compiled:
        """Compiles the program.

        Raises:
          NoLowering: the device can't run it; the text says why.
        """
        if compiler_options:
            raise NotImplementedError(f"compile: there are no compiler options, got {compiler_options!r}")
        return Compiled(*self._parts())


class Compiled(_Stage):
    """A compiled program: called with arguments of the types that it was compiled for."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.program = dispatch.compile_program(self.jaxpr, self.device, self.fun_name, self.donated)

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_flatten((args, kwargs))
        if tree != self.in_tree:
            raise TypeError(
                f"Function compiled with input pytree does not match the input pytree it was called with. "
                f"{self.fun_name} was compiled for {self.in_tree}, and called with {tree}."
            )
        self._check(args, kwargs, [aval_of(x) for x in leaves])
        outs = self.program.run([*self.jaxpr.consts, *leaves])
        return tree_unflatten(self.out_tree, outs)

    def _check(self, args: Any, kwargs: Any, avals: Sequence[ShapedArray]) -> None:
        wanted = self.jaxpr.in_avals
        if list(avals) == wanted:
            return
        paths = [keystr(path) for path, _ in tree_leaves_with_path((args, kwargs))]
        differing = [
            f"  argument {path}: compiled for {w}, called with {a}"
            for path, w, a in zip(paths, wanted, avals, strict=True)
            if (w.shape, w.dtype) != (a.shape, a.dtype)
        ]
        if differing:
            raise TypeError(
                "Argument types differ from the types for which this computation was compiled:\n" + "\n".join(differing)
            )

    @property
    def report(self) -> Report:
        """What the program consists of."""
        return self.program.executable.report()

    def as_text(self) -> str:
        """The programs of the kernels, as the backend writes them."""
        return "\n".join(k.source or f"// {k.name}: a {k.kind} of {k.fused}" for k in self.report.kernels)

    def cost_analysis(self) -> dict[str, float]:
        """Scalar operations (``flops``) and bytes moved (``bytes accessed``) of one call, as far as they are known."""
        report = self.report
        return {"flops": float(report.flops), "bytes accessed": float(report.bytes_moved)}

    def memory_analysis(self) -> MemoryAnalysis:
        """The bytes that a call uses."""
        return MemoryAnalysis(
            sum(a.nbytes for a in self.jaxpr.in_avals),
            sum(a.nbytes for a in self.jaxpr.out_avals),
            self.report.arena_bytes,
            sum(a.nbytes for a, d in zip(self.jaxpr.in_avals, self.donated) if d),
        )

    def runtime_executable(self) -> Any:
        """The backend's executable."""
        return self.program.executable


class MemoryAnalysis:
    """The bytes that one call of a compiled program uses."""

    def __init__(self, arguments: int, output: int, temp: int, alias: int) -> None:
        self.argument_size_in_bytes = arguments
        self.output_size_in_bytes = output
        self.temp_size_in_bytes = temp
        self.alias_size_in_bytes = alias
        """Of donated arguments, whose memory results may take over."""

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"MemoryAnalysis({parts})"
