"""Programs without running them: ``make_jaxpr eval_shape ShapeDtypeStruct``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.api.arguments import shapes, wraps
from polyax.control.spmd import axes_bound
from polyax.ir import dtypes
from polyax.ir.aval import NO_SUMS, ManualAxisType, ShapedArray, aval_of
from polyax.ir.refs import is_ref
from polyax.meshes.current import mesh_for_specs, mesh_that_is_set
from polyax.meshes.formats import Format, Layout
from polyax.meshes.sharding import NamedSharding, Sharding
from polyax.meshes.spec import PartitionSpec
from polyax.ops.basis import convert, empty
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.calls import Signature
from polyax.trace.flat import name_of
from polyax.trace.traces import Traces
from polyax.trace.tree import tree_map, tree_unflatten


class ShapeDtypeStruct:
    """Shape and dtype of an array, without one.

    >>> ShapeDtypeStruct((2, 3), np.float32)
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("_layout", "dtype", "is_ref", "manual_axis_type", "shape", "sharding", "weak_type")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
        manual_axis_type: ManualAxisType | None = None,
        is_ref: bool = False,
    ) -> None:
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        self._layout = sharding.layout if isinstance(sharding, Format) else None
        if self._layout is Layout.AUTO:
            raise TypeError(
                "`Layout.AUTO` cannot be used in place of a device-local layout in a `ShapeDtypeStruct`. Got "
                f"{sharding}"
            )
        self.shape = tuple(shape)
        if isinstance(sharding, PartitionSpec) and len(sharding) > self.ndim:
            raise ValueError(
                f"PartitionSpec {sharding} is only valid for values of rank at least {len(sharding)}, but was applied "
                f"to a value of rank {self.ndim}."
            )
        if sharding is not None and not isinstance(sharding, Sharding):
            sharding = _sharding(sharding)
        self.dtype = dtypes.as_dtype(dtype)
        self.sharding = sharding
        self.weak_type = weak_type
        self.manual_axis_type = manual_axis_type
        self.is_ref = is_ref

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, name):  # it may be a key in a dictionary
            raise RuntimeError(f"Cannot reassign attributes ({name}) of immutable ShapeDtypeStruct objects")
        super().__setattr__(name, value)

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """That of ``x``, an array or what has a shape and a dtype; with its sharding, if it was put somewhere.

        >>> ShapeDtypeStruct.like(np.ones(3, np.float32))
        ShapeDtypeStruct(shape=(3,), dtype=float32)

        Raises:
          NotImplementedError: ``x`` is a reference.
          TypeError: ``x`` is no array.
        """
        aval = aval_of(x)
        if is_ref(aval):
            raise NotImplementedError("ShapeDtypeStruct.like: references aren't supported; give it what they hold")
        sharding = getattr(x, "sharding", aval.told) if getattr(x, "committed", True) else None
        return cls(
            aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type, manual_axis_type=_where_manual(aval)
        )

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """The same with other attributes, by their names.

        >>> ShapeDtypeStruct((2, 3), np.float32).update(shape=(4,))
        ShapeDtypeStruct(shape=(4,), dtype=float32)

        Raises:
          ValueError: a sharding is given, where there was a ``Format`` with an order of dimensions.
        """
        given = changes.get("sharding")
        if self._layout is not None and given is not None and not isinstance(given, Format):
            raise ValueError(
                f"You are updating ShapeDtypeStruct with a {type(given)} when the original ShapeDtypeStruct had a "
                f"concrete layout {self.format}. This might lead to bugs. If you want to do this, create a new "
                "ShapeDtypeStruct via the constructor."
            )
        names = ("shape", "dtype", "weak_type", "manual_axis_type", "is_ref")
        kept: dict[str, Any] = {name: getattr(self, name) for name in names}
        kept["sharding"] = self.sharding if self._layout is None else self.format
        return ShapeDtypeStruct(**{name: changes.get(name, value) for name, value in kept.items()})

    @property
    def format(self) -> Format:
        """The sharding, with the order of dimensions that was given with it."""
        return Format(self._layout, self.sharding)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.sharding, self._layout, self.weak_type, self.manual_axis_type, self.is_ref

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        sharding = f", sharding={self.sharding}" if self.sharding is not None else ""
        layout = f", format={self._layout}" if self._layout is not None else ""
        manual = f", manual_axis_type={self.manual_axis_type}" if self.manual_axis_type else ""
        ref = ", is_ref=True" if self.is_ref else ""
        dtype = dtypes.full_name(self.dtype)
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={dtype}{sharding}{layout}{weak}{manual}{ref})"


def _sharding(given: Any) -> Sharding | None:
    if isinstance(given, Format):
        return given.sharding
    if not isinstance(given, PartitionSpec):
        raise ValueError(
            "sharding should be an instance of `jax.sharding.Sharding`, `jax.sharding.PartitionSpec` or "
            f"`jax.experimental.layout.Format`. Got {given} of type {type(given)}."
        )
    mesh = mesh_that_is_set() or mesh_for_specs()
    if mesh is None:
        raise TypeError(
            "When specifying PartitionSpec to `ShapeDtypeStruct`, the context mesh cannot be empty. Please use "
            "`polyax.set_mesh` to set the mesh context."
        )
    return NamedSharding(mesh, given)


def struct(aval: ShapedArray, sharding: Any = None) -> ShapeDtypeStruct:
    """That of a type, with ``sharding`` or the one that the type tells."""
    return ShapeDtypeStruct(
        aval.shape,
        aval.dtype,
        sharding=sharding or aval.told,
        weak_type=aval.weak_type,
        manual_axis_type=_where_manual(aval),
        is_ref=is_ref(aval),
    )


def _where_manual(aval: ShapedArray) -> ManualAxisType | None:
    return aval.manual_axis_type if aval.vma or aval.sums != NO_SUMS else None


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
    abstracted_axes: Any = None,
) -> Callable[..., Any]:
    """A function that gives the jaxpr of ``fun`` for its arguments (arrays, or ``ShapeDtypeStruct``).

    >>> make_jaxpr(lambda x: x * x)(2.0)
    { lambda ; a:f32[]. let b:f32[] = mul a a in (b,) }
    """
    if abstracted_axes is not None:
        raise NotImplementedError("make_jaxpr: abstracted_axes is not supported")
    signature, traces = Signature(fun, "make_jaxpr", static=(static_argnums, None), traced_for="jit"), Traces()

    @wraps(fun, "The jaxpr of {fun}.")
    @api_boundary
    def make_jaxpr_f(*args: Any, **kwargs: Any) -> Any:
        call = signature.split(args, kwargs)
        with axes_bound(axis_env or ()):
            made = traces.find(call.key(shapes(call)), call)
        if not return_shape:
            return made.closed
        return made.closed, tree_unflatten(made.out_tree, map(struct, made.closed.out_avals))

    make_jaxpr_f.__name__ = f"make_jaxpr({name_of(fun)})"
    make_jaxpr_f.__qualname__ = f"make_jaxpr({getattr(fun, '__qualname__', name_of(fun))})"
    make_jaxpr_f.__module__ = "polyax"
    return make_jaxpr_f


@api_boundary
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of ``fun(*args, **kwargs)``, computed without arithmetic.

    ``fun`` may return ``ShapeDtypeStruct`` itself. Results of a jitted function with ``out_shardings`` tell of these.

    >>> eval_shape(lambda x: x[None], ShapeDtypeStruct((3,), 'float32'))
    ShapeDtypeStruct(shape=(1, 3), dtype=float32)
    """
    if getattr(fun, "must_be_outermost", False):
        return fun.eval_shape(*args, **kwargs)  # type: ignore[attr-defined]
    return make_jaxpr(_with_structs(fun), return_shape=True)(*args, **kwargs)[1]


def _with_structs(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``fun``, which may return ``ShapeDtypeStruct`` where others return arrays."""
    if not callable(fun):
        return fun

    @functools.wraps(fun)
    def with_structs(*args: Any, **kwargs: Any) -> Any:
        return tree_map(_array_of, fun(*args, **kwargs))

    return with_structs


def _array_of(x: Any) -> Any:
    if not isinstance(x, ShapeDtypeStruct):
        return x
    return convert(empty(x.shape, x.dtype, out_sharding=x.sharding), x.dtype, x.weak_type)
