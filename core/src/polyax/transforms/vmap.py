"""Vectorisation: every value may carry one more dimension; batch rules say where it ends up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polyax.ir.aval import aval_of
from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr, eval_jaxpr, walk_eqns
from polyax.ir.primitive import Primitive
from polyax.ir.refs import holds_refs, met
from polyax.ir.source import Source, user_source
from polyax.meshes.axes import AbstractMesh
from polyax.meshes.explicit import without_dim
from polyax.meshes.spec import axes_of as axes_named
from polyax.ops.basis import batched_aval, match_axis
from polyax.trace.context import current_trace, extend_axis_env, set_trace
from polyax.trace.leaks import check_leaks
from polyax.trace.recording import trace_to_jaxpr
from polyax.trace.tracer import Trace, Tracer, check_alive
from polyax.transforms.memo import memoize_by_jaxpr


@dataclass(frozen=True)
class AxisData:
    """The mapped axis, as batch rules see it."""

    size: int
    name: Any = None
    spmd_name: Any = None
    """The mesh axis, or axes, that cut it where values in the mapped function are constrained to a sharding."""
    cut: tuple[Any, ...] = ()
    """The explicit axes of a mesh that types say cut it."""
    mesh: AbstractMesh | None = None


class BatchTracer(Tracer):
    """A value with a batch dimension at ``dim``; its type is that of one example."""

    __slots__ = ("dim", "value")

    def __init__(self, trace: Trace, value: Any, dim: int) -> None:
        aval = aval_of(value)
        self._trace = trace
        self.aval = without_dim(aval, dim)
        self.value = value
        self.dim = dim

    @property
    def val(self) -> Any:
        """The values of all examples, under the name that programs written for JAX know."""
        return self.value

    @property
    def batch_dim(self) -> int:
        return self.dim

    def __repr__(self) -> str:
        return f"VmapTracer(aval={self.aval!s}, batched={aval_of(self.value)!s})"

    def origin(self) -> str:
        batched = f"\nThis value is batched by vmap: it stands for {aval_of(self.value)}, mapped over axis {self.dim}."
        made = getattr(self._trace, "made", None) or {}
        if id(self) not in made:
            return batched
        return f"{batched}\nThis BatchTracer with object id {id(self)} was created on line:\n  {made[id(self)]}"


class BatchTrace(Trace):
    __slots__ = ("axis", "made", "parent")

    def __init__(self, parent: Trace, axis: AxisData) -> None:
        super().__init__()
        self.parent = parent
        self.axis = axis
        self.made: dict[int, Source | None] | None = {} if config.check_tracer_leaks else None
        """The user's lines that made tracers, by their ids: only while somebody looks for those that stay."""

    def split(self, x: Any) -> tuple[Any, int | None]:
        if isinstance(x, Tracer):
            check_alive(x)
            if type(x) is BatchTracer and isinstance(trace := x._trace, BatchTrace) and trace.axis is self.axis:
                return x.value, x.dim  # functions with rules close over such values
        return x, None

    def join(self, value: Any, dim: int | None) -> Any:
        if dim is None:
            return value
        x = BatchTracer(self, value, dim)
        if self.made is not None:
            self.made[id(x)] = user_source()
        return x

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> list[Any]:
        pairs = [self.split(x) for x in args]
        values = [v for v, _ in pairs]
        dims = [d for _, d in pairs]
        if met.any and holds_refs(primitive, params):
            with set_trace(self):
                return primitive.rule("discharge")(*args, **params)
        with set_trace(self.parent):
            if all(d is None for d in dims) and not _may_be_mapped(primitive, params, self.axis.name):
                return self.parent.process(primitive, tuple(values), params)
            outs, out_dims = primitive.rule("batch")(self.axis, values, dims, **params)
        return [self.join(v, d) for v, d in zip(outs, out_dims, strict=True)]


def cut_by_vmap() -> frozenset[Any]:
    """The axes of a mesh along which ``vmap``, where this is asked, cuts what it maps over."""
    trace: Any = current_trace()
    found: set[Any] = set()
    while trace is not None:
        if isinstance(trace, BatchTrace):
            found.update(trace.axis.cut, axes_named(trace.axis.spmd_name))
        trace = getattr(trace, "parent", None) or getattr(trace, "known", None)
    return frozenset(found)


def _may_be_mapped(primitive: Primitive, params: dict[str, Any], name: Any) -> bool:
    """Whether results may be mapped though no argument is: functions not yet traced may close over mapped values, and
    mapped values be written to references that are made; those from outside can't be written to."""
    if primitive.makes_refs or primitive.writes_refs:
        return True
    return (primitive.record is not None and params.get("fun") is not None) or uses_axis(primitive, params, name)


def uses_axis(primitive: Primitive, params: dict[str, Any], name: Any) -> bool:
    """Whether an equation works along the named axis, itself or in its programs."""
    if name is None:
        return False
    if primitive.axes is not None:
        return name in primitive.axes(**params)
    if primitive.record is not None and any(callable(p) for p in params.values()):
        return True  # functions that aren't traced yet
    programs = primitive.sub_jaxprs(**params) if primitive.sub_jaxprs is not None else ()
    return any(name in axes_of(p) for p in programs)


@memoize_by_jaxpr
def axes_of(program: ClosedJaxpr) -> frozenset[Any]:
    """The named axes that collectives of the program work along."""
    eqns = [e for e in walk_eqns(program.jaxpr) if e.primitive.axes is not None]
    return frozenset(name for e in eqns for name in e.primitive.axes(**e.params))  # type: ignore[misc]


def batch_flat(
    fun: Callable[..., Sequence[Any]], axis: AxisData, args: Sequence[Any], dims: Sequence[int | None]
) -> tuple[list[Any], list[int | None]]:
    """Outputs of ``fun`` mapped over ``dims`` of ``args``, with the dimension where each output carries the axis."""
    trace = BatchTrace(current_trace(), axis)
    tracers = [trace.join(x, d) for x, d in zip(args, dims, strict=True)]
    try:
        with set_trace(trace), extend_axis_env(axis.name, axis.size):
            outs = fun(*tracers)
        pairs = [trace.split(x) for x in outs]
    finally:
        trace.invalidate()
    del tracers, outs
    check_leaks(trace, "a function mapped by vmap")
    return [v for v, _ in pairs], [d for _, d in pairs]


@memoize_by_jaxpr
def batch_jaxpr(
    jaxpr: ClosedJaxpr, axis: AxisData, dims: tuple[int | None, ...], batched_out: tuple[bool, ...] | None = None
) -> tuple[ClosedJaxpr, tuple[int | None, ...]]:
    """The mapped program, and where its outputs carry the axis.

    ``batched_out`` forces outputs to be batched, at dimension 0 (loops need carries that keep their type).
    """
    out_dims: list[int | None] = []

    def fun(*args: Any) -> list[Any]:
        outs, dims_out = batch_flat(lambda *xs: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, xs), axis, args, dims)
        if batched_out is not None:
            wanted = [0 if b else d for b, d in zip(batched_out, dims_out, strict=True)]
            outs = [match_axis(axis, d, w, x) for x, d, w in zip(outs, dims_out, wanted, strict=True)]
            dims_out = wanted
        out_dims.extend(dims_out)
        return outs

    avals = [batched_aval(a, axis, d) for a, d in zip(jaxpr.in_avals, dims, strict=True)]
    return trace_to_jaxpr(fun, avals, name=jaxpr.jaxpr.debug_name), tuple(out_dims)
