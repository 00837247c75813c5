"""What programs have as parameters, types and constants, as JSON and back: a closed set of kinds, and nothing else.

A value is itself if JSON has it (None, booleans, integers, strings), or a list that begins with the name of its kind.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from polyax.export.container import Blobs
from polyax.export.parsing import dimension
from polyax.export.scopes import SymbolicScope
from polyax.ir import dtypes
from polyax.ir.aval import NO_SUMS, ShapedArray
from polyax.ir.dims import SymbolicDim
from polyax.ir.prng import GENERATORS, KeyDType, PRNGImpl, key_dtype
from polyax.lax.accuracy import AccuracyMode, Tolerance
from polyax.meshes.axes import AbstractMesh, AxisType, MeshAxes
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import UNCONSTRAINED, PartitionSpec, Summands
from polyax.ops.conv_shapes import ConvDimensionNumbers
from polyax.ops.elementwise import RoundingMethod
from polyax.ops.fft import FftType
from polyax.ops.gather import GatherDimensionNumbers, GatherScatterMode
from polyax.ops.precision import DotAlgorithm, DotAlgorithmPreset, Precision
from polyax.ops.scatter import ScatterDimensionNumbers
from polyax.random import key_data, wrap_key_data

_ENUMS = (AccuracyMode, AxisType, DotAlgorithmPreset, FftType, GatherScatterMode, Precision, RoundingMethod)
ENUMS: dict[str, type[enum.Enum]] = {kind.__name__: kind for kind in _ENUMS}
_RECORDS = (ConvDimensionNumbers, DotAlgorithm, GatherDimensionNumbers, ScatterDimensionNumbers)
RECORDS: dict[str, Any] = {kind.__name__: kind for kind in _RECORDS}
PLAIN = (type(None), bool, int, str)


class Unsaveable(NotImplementedError):
    """A program holds something that has no place in a file."""


class ValueWriter:
    """Values as JSON; arrays go to ``blobs``, programs to where ``program`` puts them."""

    def __init__(self, blobs: Blobs, program: Callable[[Any], int]) -> None:
        self.blobs = blobs
        self.program = program

    def all(self, values: Any) -> list[Any]:
        return [self(v) for v in values]

    def __call__(self, x: Any) -> Any:
        if type(x) in PLAIN:
            return x
        for kind, write in _WRITERS:
            if isinstance(x, kind):
                return write(self, x)
        if hasattr(x, "eqns") and hasattr(x, "consts"):
            return ["program", self.program(x)]
        if isinstance(getattr(x, "aval", None), ShapedArray) and hasattr(x, "block_until_ready"):
            return _array(self, x)
        raise Unsaveable(f"a value of type {type(x).__name__} can't be part of an exported program: {x!r}")


def _enum(w: ValueWriter, x: enum.Enum) -> Any:
    if ENUMS.get(type(x).__name__) is not type(x):
        raise Unsaveable(f"{x!r} can't be part of an exported program")
    return ["enum", type(x).__name__, x.name]


def _tuple(w: ValueWriter, x: tuple[Any, ...]) -> Any:
    name = type(x).__name__
    if RECORDS.get(name) is type(x):
        return ["record", name, *w.all(x)]
    if isinstance(x, Summands):
        return ["summands", w(x.sums), w(x.reduced), *w.all(tuple(x))]
    return ["tuple", *w.all(x)]


def _real(x: float) -> str:
    return float(x).hex() if math.isfinite(x) else repr(float(x))


def _dtype(w: ValueWriter, x: Any) -> Any:
    return ["key", x.impl.name] if isinstance(x, KeyDType) else ["dtype", dtypes.full_name(x)]


def _array(w: ValueWriter, x: Any) -> Any:
    aval = getattr(x, "aval", None)
    if aval is not None and isinstance(aval.dtype, KeyDType):
        return ["keys", aval.dtype.impl.name, _array(w, np.asarray(key_data(x)))]
    host = np.asarray(x)
    weak = bool(aval is not None and aval.weak_type)
    order = host.dtype.newbyteorder("<") if host.dtype.kind in "iufc" and host.dtype.isbuiltin else host.dtype
    data = np.ascontiguousarray(host.astype(order, copy=False)).tobytes()
    return ["array", _dtype(w, host.dtype), list(host.shape), weak, w.blobs.add(data)]


def _aval(w: ValueWriter, x: ShapedArray) -> Any:
    basic = ["aval", _dtype(w, x.dtype), w.all(x.shape), x.weak_type]
    if not x.vma and x.sums == NO_SUMS and x.told is None:
        return basic
    return [*basic, w(x.vma), w(x.sums), w(x.told)]


def _spec(w: ValueWriter, x: PartitionSpec) -> Any:
    parts = [["open"] if p is UNCONSTRAINED else w(p) for p in x.partitions]
    return ["spec", w(x.unreduced), w(x.reduced), *parts]


def _mesh(w: ValueWriter, x: MeshAxes) -> Any:
    return ["mesh", list(x.axis_sizes), w(x.axis_names), [t.name for t in x.axis_types]]


def _scalar(w: ValueWriter, x: np.generic) -> Any:
    return ["scalar", dtypes.full_name(x.dtype), np.asarray(x).tobytes().hex()]


def _scalar_type(w: ValueWriter, x: type) -> Any:
    """``np.float32`` and the like, which stand for dtypes."""
    if not issubclass(x, np.generic):
        raise Unsaveable(f"the class {x.__name__} can't be part of an exported program")
    return ["type", dtypes.full_name(np.dtype(x))]


_WRITERS: tuple[tuple[Any, Callable[[ValueWriter, Any], Any]], ...] = (
    (np.generic, _scalar),
    (np.ndarray, _array),
    (enum.Enum, _enum),
    (SymbolicDim, lambda w, x: ["dimension", str(x)]),
    (tuple, _tuple),
    (list, lambda w, x: ["list", *w.all(x)]),
    (frozenset, lambda w, x: ["set", *w.all(sorted(x, key=str))]),
    (Mapping, lambda w, x: ["map", *([w(k), w(v)] for k, v in x.items())]),
    (bool, lambda w, x: bool(x)),
    (int, lambda w, x: int(x)),
    (float, lambda w, x: ["float", _real(x)]),
    (complex, lambda w, x: ["complex", _real(x.real), _real(x.imag)]),
    (type, _scalar_type),
    (bytes, lambda w, x: ["bytes", x.hex()]),
    (slice, lambda w, x: ["slice", w(x.start), w(x.stop), w(x.step)]),
    ((np.dtype, KeyDType), _dtype),
    (PRNGImpl, lambda w, x: ["generator", x.name]),
    (ShapedArray, _aval),
    (MeshAxes, _mesh),
    (PartitionSpec, _spec),
    (NamedSharding, lambda w, x: ["sharding", w(x.mesh), w(x.spec)]),
    (Tolerance, lambda w, x: ["tolerance", _real(x.atol), _real(x.rtol), x.ulps]),
)


class ValueReader:
    """The inverse of ``ValueWriter``; names in dimensions are of ``scope``."""

    def __init__(self, blobs: Sequence[bytes], programs: Sequence[Any], scope: SymbolicScope) -> None:
        self.blobs = blobs
        self.programs = programs
        self.scope = scope

    def all(self, values: Sequence[Any]) -> list[Any]:
        return [self(v) for v in values]

    def __call__(self, x: Any) -> Any:
        if type(x) in PLAIN:
            return x
        if not isinstance(x, list) or not x or x[0] not in _READERS:
            raise ValueError(f"this version of polyax knows no value of the kind {x[0] if x else x!r}")
        return _READERS[x[0]](self, *x[1:])

    def array(self, dtype: Any, shape: Sequence[int], weak: bool, blob: int) -> Any:
        return _host(self.blobs[blob], self(dtype), shape)

    def aval(self, dtype: Any, shape: Sequence[Any], weak: bool, *rest: Any) -> ShapedArray:
        return ShapedArray(tuple(self.all(shape)), self(dtype), weak, **self._places(*rest))

    def _places(self, vma: Any = None, sums: Any = None, sharding: Any = None) -> dict[str, Any]:
        return {} if vma is None else {"vma": self(vma), "sums": self(sums), "sharding": self(sharding)}

    def spec(self, unreduced: Any, reduced: Any, *parts: Any) -> PartitionSpec:
        found = [UNCONSTRAINED if p == ["open"] else self(p) for p in parts]
        return PartitionSpec(*found, unreduced=self(unreduced), reduced=self(reduced))

    def mesh(self, sizes: Sequence[int], names: Any, types: Sequence[str]) -> AbstractMesh:
        return AbstractMesh(tuple(sizes), self(names), tuple(AxisType[t] for t in types))


def _host(data: bytes, dtype: Any, shape: Sequence[int]) -> np.ndarray:
    return np.frombuffer(data, dtype).reshape(shape) if dtype.itemsize else np.zeros(shape, dtype)


def _parsed(text: str) -> float:
    return float.fromhex(text) if text not in ("nan", "inf", "-inf") else float(text)


_DTYPES = {dtypes.full_name(dtype): dtype for dtype in dtypes.KNOWN}


def _named(name: str) -> Any:
    if name not in _DTYPES:
        raise ValueError(f"this version of polyax knows no dtype {name!r}")
    return _DTYPES[name]


_READERS: dict[str, Callable[..., Any]] = {
    "scalar": lambda r, dtype, data: _host(bytes.fromhex(data), _named(dtype), ())[()],
    "array": ValueReader.array,
    "keys": lambda r, impl, data: wrap_key_data(r(data), impl=impl),
    "enum": lambda r, kind, name: ENUMS[kind][name],
    "record": lambda r, kind, *fields: RECORDS[kind](*r.all(fields)),
    "summands": lambda r, sums, reduced, *cuts: Summands(r.all(cuts), r(sums), r(reduced)),
    "tuple": lambda r, *xs: tuple(r.all(xs)),
    "list": lambda r, *xs: r.all(xs),
    "set": lambda r, *xs: frozenset(r.all(xs)),
    "map": lambda r, *pairs: {r(k): r(v) for k, v in pairs},
    "float": lambda r, x: _parsed(x),
    "complex": lambda r, x, y: complex(_parsed(x), _parsed(y)),
    "bytes": lambda r, x: bytes.fromhex(x),
    "slice": lambda r, *ends: slice(*r.all(ends)),
    "dtype": lambda r, name: _named(name),
    "type": lambda r, name: _named(name).type,
    "key": lambda r, impl: key_dtype(GENERATORS[impl]),
    "generator": lambda r, impl: GENERATORS[impl],
    "aval": ValueReader.aval,
    "mesh": ValueReader.mesh,
    "spec": ValueReader.spec,
    "sharding": lambda r, mesh, spec: NamedSharding(r(mesh), r(spec)),
    "tolerance": lambda r, a, b, ulps: Tolerance(_parsed(a), _parsed(b), ulps),
    "dimension": lambda r, text: dimension(text, r.scope),
    "program": lambda r, n: r.programs[n],
}
