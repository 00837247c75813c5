"""How results are cut where types tell it of operands: each dimension as those of operands that belong to it.

Which ones do, the rule ``factors`` of a primitive says; who is not as simple has a rule ``explicit``.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from polyax.ir.aval import ShapedArray, UnplacedArray
from polyax.ir.errors import ShardingTypeError
from polyax.ir.primitive import Primitive, ambient
from polyax.meshes import sums
from polyax.meshes.ambiguity import NEEDS_ALL, REMEDY, check_clear, types
from polyax.meshes.axes import AbstractMesh
from polyax.meshes.current import get_abstract_mesh
from polyax.meshes.explicit import cuts_of, mesh_of, sharding_in_type
from polyax.meshes.factors import Factors
from polyax.meshes.spec import NO_AXES, PartitionSpec, Sums, spec_of, summands


class _Ambient(threading.local):
    lenient = False
    anywhere = False


_ambient = _Ambient()


@contextmanager
def lenient() -> Generator[None]:
    """Sums along what both operands are cut along are made, and where types of operands don't tell those of results,
    nothing is told: for programs that nobody wrote."""
    before, _ambient.lenient = _ambient.lenient, True
    try:
        yield
    finally:
        _ambient.lenient = before


@contextmanager
def anywhere() -> Generator[None]:
    """Operands may lie on a mesh whose axes are of other types than those in force."""
    before, _ambient.anywhere = _ambient.anywhere, True
    try:
        yield
    finally:
        _ambient.anywhere = before


def is_lenient() -> bool:
    return _ambient.lenient or ambient.recorded


def results(
    primitive: Primitive, ins: Sequence[ShapedArray], params: Mapping[str, Any], outs: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    """The types ``outs`` of results, with how they are cut.

    Raises:
      ShardingTypeError: operands are cut so that this isn't clear.
      ValueError: operands lie on another mesh than that in force.
      NotImplementedError: they are from around a ``shard_map``, cut along axes that are manual in it.
    """
    if primitive.explicit is not None:
        return primitive.explicit(ins, outs, **params)
    mesh = mesh_of(ins)
    if mesh is None and len(ins) == 1 and not ins[0].placed:
        return [UnplacedArray(a.shape, a.dtype, a.weak_type) if type(a) is ShapedArray else a for a in outs]
    if mesh is None or (primitive.factors is None and (primitive.higher_order or primitive.absent.get("factors"))):
        return outs  # its programs say how, or devices have all of it
    _check_meshes(primitive, ins)
    unreduced, reduced = sums.results(primitive, ins, params) if sums.waiting(ins) else (NO_AXES, NO_AXES)
    found = None if primitive.factors is None else primitive.factors(*ins, **params)
    if found is None:
        raise ShardingTypeError(
            f"{primitive} has no rule that says how its results are cut, with operands "
            f"{types(ins)}. Wrap it in `polyax.sharding.auto_axes`, or gather them with `polyax.reshard`."
        )
    check_clear(primitive.name, ins, found)
    return _Consensus(primitive, found, ins, mesh, unreduced, reduced).results(outs)


def _check_meshes(primitive: Primitive, ins: Sequence[ShapedArray]) -> None:
    meshes = {a.told.mesh: a for a in ins if a.told is not None}
    here = get_abstract_mesh()
    for mesh, aval in () if here.empty or _ambient.anywhere or is_lenient() else meshes.items():
        if here.axis_types != mesh.axis_types or here.axes != mesh.axes:
            raise _on_other_mesh(primitive, here, mesh, aval)
    if len(meshes) > 1:
        raise ShardingTypeError(
            f"{primitive}: operands {types(ins)} lie on different meshes: {', '.join(map(str, meshes))}. Put them on "
            "one with `polyax.device_put`."
        )


def _on_other_mesh(primitive: Primitive, here: AbstractMesh, mesh: AbstractMesh, aval: ShapedArray) -> Exception:
    if here.axes == mesh.axes and set(here.manual_axes) & set(mesh.explicit_axes):
        return NotImplementedError(
            "Closing over inputs to shard_map where the input is sharded on `Explicit` axes is not implemented. As a "
            f"workaround, please pass those inputs as an argument to shard_map. Got input with shape {types([aval])}"
        )
    return ValueError(
        f"For primitive {primitive}, context mesh {here} should match the aval mesh {mesh} for shape {aval}. Bring it "
        "there with `polyax.reshard`."
    )


KEEPING = frozenset(
    (
        "concatenate", "dynamic_slice", "dynamic_update_slice", "fft", "pad", "reduce_window", "reduce_window_max",
        "reduce_window_min", "reduce_window_sum", "rev", "select_and_gather_add", "slice", "split",
    )
)  # fmt: skip
"""Primitives whose results are cut as operands are, also in dimensions that they go along, as far as that goes."""
KEEPING_FIRST = frozenset(("conv_general_dilated",))
"""Those whose results are cut so as their first operand is."""


class _Consensus:
    """What the operands of one equation say of its factors."""

    def __init__(
        self,
        primitive: Primitive,
        found: Factors,
        ins: Sequence[ShapedArray],
        mesh: AbstractMesh,
        unreduced: Sums,
        reduced: Sums,
    ) -> None:
        self.primitive = primitive
        self.found = found
        self.ins = ins
        self.mesh = mesh
        self.unreduced, self.reduced = unreduced, reduced
        self.sizes = mesh.shape
        self.shares: dict[int, tuple[Any, ...]] = {}
        self.kept: dict[int, tuple[Any, ...]] = {}
        self.kept_in: set[int] = {f for dims in found.outs for dim in dims for f in dim}
        for n, aval in enumerate(ins):
            for d, names in enumerate(cuts_of(aval)):
                if names:
                    self._hear(n, d, names)
        self._check_sums()

    def _hear(self, n: int, d: int, names: tuple[Any, ...]) -> None:
        dim = self.found.ins[n][d]
        if self._keeps(n) and not (dim and self.kept_in.issuperset(dim)):
            self.kept.setdefault(d, names)
        elif not dim:
            if self.ins[n].shape[d] > 1:
                raise self._needs_all(n, d)
        elif len(dim) == 1:
            self._share(n, d, dim[0], names)
        else:
            self._split(n, d, dim, names)

    def _keeps(self, n: int) -> bool:
        return self.primitive.name in KEEPING or (n == 0 and self.primitive.name in KEEPING_FIRST)

    def _share(self, n: int, d: int, f: int, names: tuple[Any, ...]) -> None:
        if f in self.found.whole and (f in self.kept_in or self.primitive.name == "reshape"):
            raise self._needs_all(n, d)
        if self.shares.setdefault(f, names) != names:
            raise self._differ(f)

    def _split(self, n: int, d: int, dim: tuple[int, ...], names: tuple[Any, ...]) -> None:
        """The axes of a dimension that falls into several: the outer ones get them, as many as divide them."""
        left = list(names)
        for f in dim:
            own: list[Any] = []
            size = self.found.sizes[f]
            while left and size % self.sizes[left[0]] == 0:
                size //= self.sizes[left[0]]
                own.append(left.pop(0))
            if own:
                self._share(n, d, f, tuple(own))
            if size > 1:
                break
        if left:
            raise self._needs_all(n, d)

    def _check_sums(self) -> None:
        for f in self.found.reduced:
            specs = [_spec_at(a, dims, f) for a, dims in zip(self.ins, self.found.ins, strict=True)]
            if len(specs) == 2 and all(specs) and not is_lenient():
                raise ShardingTypeError(
                    "Contracting dimensions are sharded and it is ambiguous how the output should be sharded. Please "
                    "specify the output sharding via the `out_sharding` parameter. Got "
                    f"lhs_contracting_spec={specs[0]} and rhs_contracting_spec={specs[1]}"
                )

    def results(self, outs: Sequence[ShapedArray]) -> list[ShapedArray]:
        return [self._result(a, dims) for a, dims in zip(outs, self.found.outs, strict=True)]

    def _result(self, aval: ShapedArray, dims: Sequence[Sequence[int]]) -> ShapedArray:
        cuts = [tuple([a for f in dim for a in self.shares.get(f, ())]) for dim in dims]
        for d, names in self.kept.items():  # of operands of the same rank
            if not dims[d]:
                cuts[d] = names
        self._check_result(aval, cuts)
        told = sharding_in_type(self.mesh, summands(cuts, self.unreduced), self.reduced)
        return aval.update(sharding=told)

    def _check_result(self, aval: ShapedArray, cuts: Sequence[tuple[Any, ...]]) -> None:
        used = [a for names in cuts for a in names]
        if len(set(used)) < len(used):
            raise ShardingTypeError(
                f"{self.primitive} operation with inputs: {types(self.ins)} produces an illegally sharded result: "
                f"{_marked(aval, cuts)}. {REMEDY}"
            )
        for d, (n, names) in enumerate(zip(aval.shape, cuts, strict=True)):
            parts = math.prod(self.sizes[a] for a in names)
            if n % parts:
                what = _DOING.get(self.primitive.name, self.primitive)
                raise ShardingTypeError(
                    f"{what} on sharded dims where out dim ({n}) is not divisible by mesh axes ({parts}) "
                    f"with spec ({', '.join(map(str, names))}) is not implemented. Got inputs {types(self.ins)}, "
                    f"output shape={aval.shape}, dimension {d}. {REMEDY}"
                )

    def _needs_all(self, n: int, d: int) -> ShardingTypeError:
        cuts = cuts_of(self.ins[n])
        names, what = cuts[d], NEEDS_ALL.get(self.primitive.name, "").format(n=n, spec=spec_of(cuts))
        return ShardingTypeError(
            f"{what}{self.primitive} needs its operand {n} unsharded over dimension {d}, which is cut along "
            f"{', '.join(map(repr, names))}; got {types(self.ins)}. {REMEDY}"
        )

    def _differ(self, f: int) -> ShardingTypeError:
        if f in self.found.reduced:
            specs = [_spec_at(a, dims, f) for a, dims in zip(self.ins, self.found.ins, strict=True)]
            return ShardingTypeError(
                f"{self.primitive} requires contracting dimensions to have consistent sharding, got "
                f"{' and '.join(map(str, specs))}. {REMEDY}"
            )
        if self.primitive.name == "dot_general":
            lhs, rhs = [_spec_at(a, dims, f) for a, dims in zip(self.ins, self.found.ins, strict=True)]
            return ShardingTypeError(
                "dot_general requires lhs batch dimensions and rhs batch dimensions to have the consistent sharding, "
                f"got {lhs} and {rhs}. {REMEDY}"
            )
        specs = ", ".join(str(a.told.spec.partitions) for a in self.ins if a.told is not None)
        return ShardingTypeError(f"{self.primitive} got incompatible shardings for broadcasting: {specs}. {REMEDY}")


_DOING = {"slice": "slicing", "pad": "padding"}
"""What primitives do, where their names don't say it."""


def _spec_at(aval: ShapedArray, dims: Sequence[Sequence[int]], f: int) -> tuple[Any, ...]:
    return tuple([a for dim, names in zip(dims, cuts_of(aval), strict=True) if tuple(dim) == (f,) for a in names])


def _marked(aval: ShapedArray, cuts: Sequence[tuple[Any, ...]]) -> str:
    """The text of a type that can't be."""

    class Spec:
        spec = PartitionSpec()

    Spec.spec._partitions = tuple([None if not c else c[0] if len(c) == 1 else c for c in cuts])
    return aval.update(sharding=Spec).str_short(short_dtypes=True)
