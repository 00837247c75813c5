"""What users do with references: make them, read, write and end them; and indexing, which calls the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

from polyax.control.refs import backwards as backwards  # the rules of what takes parts of arrays
from polyax.control.refs import flow as flow  # those of loops, branches and calls
from polyax.control.refs.indexing import Indices, parse
from polyax.control.refs.primitives import (
    addupdate_p,
    empty_ref_p,
    free_ref_p,
    freeze_p,
    get_p,
    new_ref_p,
    swap_p,
    write,
)
from polyax.control.refs.ref import Ref
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.dtypes import DType
from polyax.ir.primitive import ambient
from polyax.ir.refs import is_ref
from polyax.ops.basis import convert
from polyax.trace.tracer import Tracer
from polyax.trace.views import PartOfRef


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Any:
    """A reference to a new array that begins as a copy of ``init_val``.

    Args:
      init_val: an array or scalar.
      memory_space: must be None outside of programs.
      kind: a word on what rematerialisation may do with it, kept in its type.

    Raises:
      TypeError: ``init_val`` is no array.
      ValueError: it is a reference.

    >>> ref = new_ref(1.0)
    >>> ref[...] += 2.0
    >>> print(ref[...])
    3.0
    """
    try:
        aval = aval_of(init_val)
    except TypeError:
        raise TypeError(
            f"Error interpreting argument to new_ref as a JAX value. The problematic value is of type {type(init_val)} "
            "and was passed to new_ref at position 0."
        ) from None
    if is_ref(aval):
        raise ValueError(f"new_ref: a reference can't hold a reference, got {aval}; read it first, as in `ref[...]`.")
    return new_ref_p.bind1(init_val, memory_space=memory_space, kind=kind)


def empty_ref(ty: Any, memory_space: Any = None) -> Any:
    """A reference to a new array of the type ``ty``, whose contents are yet to be written; they are zero here.

    >>> import polyax
    >>> print(empty_ref(polyax.typeof(polyax.numpy.ones(2))))
    Ref([0., 0.], dtype=float32)
    """
    aval = ty if isinstance(ty, ShapedArray) else ShapedArray(tuple(ty.shape), dtypes.canonicalize(ty.dtype))
    return empty_ref_p.bind1(ty=aval, memory_space=memory_space)


def free_ref(ref: Any) -> tuple[()]:
    """Says that a reference isn't used any more."""
    _check("free_ref", ref)
    free_ref_p.bind(ref)
    return ()


def freeze(ref: Any) -> Any:
    """The last value of a reference, which isn't used any more.

    >>> print(freeze(new_ref(2.0)))
    2.0
    """
    return freeze_p.bind1(ref) if is_ref(ref) or isinstance(ref, RefView) else ref


def get(ref: Any, idx: Any = None) -> Any:
    """``ref[idx]``; all of it without an index.

    >>> import polyax
    >>> print(get(new_ref(polyax.numpy.arange(3)), 1))
    1
    """
    ref, indices, operands = _place("get", ref, idx)
    return get_p.bind1(ref, *operands, indices=indices)


def set(ref: Any, idx: Any, value: Any) -> None:
    """``ref[idx] = value``.

    Raises:
      ValueError: ``value`` has another shape or dtype than what is there.
    """
    ref, indices, operands = _place("set", ref, idx)
    value = _as_held(value, ref.aval)
    if type(ref) is Ref and ambient.trace is None:
        write(ref, value, *operands, indices=indices)
    else:
        swap_p.bind_all(ref, value, *operands, indices=indices)


def swap(ref: Any, idx: Any, value: Any, _function_name: str = "ref_swap") -> Any:
    """Writes ``value`` to ``ref[idx]``, and gives what was there before.

    >>> ref = new_ref(1.0)
    >>> print(swap(ref, ..., 2.0), ref[...])
    1.0 2.0
    """
    ref, indices, operands = _place(_function_name.removeprefix("ref_"), ref, idx)
    return swap_p.bind1(ref, _as_held(value, ref.aval), *operands, indices=indices)


def addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Adds ``x`` to ``ref[idx]``; where an index occurs twice, twice.

    >>> ref = new_ref(1.0)
    >>> addupdate(ref, ..., 2.0)
    >>> print(ref)
    Ref(3., dtype=float32, weak_type=True)
    """
    ref, indices, operands = _place("addupdate", ref, idx)
    addupdate_p.bind(ref, x, *operands, indices=indices)


def _as_held(value: Any, aval: ShapedArray) -> Any:
    """Python scalars, and integers for integers, become what the reference holds."""
    given = aval_of(value)
    if is_ref(given):
        raise ValueError(f"a reference can't hold a reference, got {given}; read it first, as in `ref[...]`.")
    fits = (given.weak_type and _both(dtypes.is_float, given.dtype, aval.dtype)) or _both(
        dtypes.is_integer, given.dtype, aval.dtype
    )
    if not fits:
        return value
    return aval.dtype.type(value) if type(value) in dtypes.PYTHON_SCALARS else convert(value, aval.dtype, False)


def _both(kind: Any, *of: DType) -> bool:
    return all(map(kind, of))


def _check(name: str, ref: Any) -> None:
    if not is_ref(ref) and not isinstance(ref, RefView):
        raise ValueError(f"Can only call `ref_{name.removeprefix('ref_')}` on a `Ref`: {ref}.")


def _place(name: str, ref: Any, idx: Any) -> tuple[Any, Indices, Sequence[Any]]:
    """The reference, and which part of it, behind a view or not."""
    _check(name, ref)
    view = ref if isinstance(ref, RefView) else RefView(ref, (), ())
    view = view.part(... if idx is None else idx)
    return view.ref, view.indices, view.operands


class RefView(PartOfRef):
    """A part of a reference: ``ref.at[index]``. It is read and written like one.

    >>> import polyax
    >>> ref = new_ref(polyax.numpy.zeros((2, 2)))
    >>> ref.at[0][1] = 5.0
    >>> print(ref)
    Ref([[0., 5.],
         [0., 0.]], dtype=float32)
    """

    __slots__ = ("indices", "operands", "ref", "shape")

    def __init__(self, ref: Any, indices: Indices, operands: Sequence[Any]) -> None:
        self.ref = ref
        self.indices = indices
        self.operands = operands
        self.shape = indices[-1].shape() if indices else ref.aval.shape

    def taken_apart(self) -> tuple[list[Any], Any]:
        return [self.ref, *self.operands], (self.indices, self.shape)

    @classmethod
    def put_together(cls, static: Any, children: Any) -> RefView:
        view = cls.__new__(cls)
        view.indices, view.shape = static
        view.ref, *view.operands = children
        return view

    def part(self, index: Any) -> RefView:
        """A part of the part."""
        found, operands = parse(index, self.shape)
        if found is None:
            return self
        return RefView(self.ref, (*self.indices, found), (*self.operands, *operands))

    @property
    def dtype(self) -> DType:
        return self.ref.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def at(self) -> RefAt:
        return RefAt(self)

    def __getitem__(self, index: Any) -> Any:
        return get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        set(self, index, value)

    def __repr__(self) -> str:
        return f"TransformedRef({self.ref!r}, {self.indices})"


class RefAt:
    """The ``at`` of references: ``ref.at[index]`` is a view."""

    __slots__ = ("_of",)

    def __init__(self, of: Any) -> None:
        self._of = of if isinstance(of, RefView) else RefView(of, (), ())

    def __getitem__(self, index: Any) -> RefView:
        return self._of.part(index)


def _get_method(self: Any, idx: Any = ()) -> Any:
    """``get(ref, idx)``."""
    return get(self, idx)


def _set_method(self: Any, value: Any, idx: Any = ()) -> None:
    """``set(ref, idx, value)``."""
    set(self, idx, value)


def _swap_method(self: Any, value: Any, idx: Any = ()) -> Any:
    """``swap(ref, idx, value)``."""
    return swap(self, idx, value)


def _addupdate_method(self: Any, value: Any, idx: Any = ()) -> None:
    """``addupdate(ref, idx, value)``."""
    addupdate(self, idx, value)


class _MethodOfReferences:
    """A method of tracers that only those of references have."""

    def __init__(self, name: str, method: Callable[..., Any]) -> None:
        self.name = name
        self.method = method

    def __get__(self, tracer: Any, owner: type) -> Any:
        if tracer is None:
            return self.method
        if not is_ref(tracer):
            raise AttributeError(
                f"{owner.__name__!r} object has no attribute {self.name!r}", name=self.name, obj=tracer
            )
        return MethodType(self.method, tracer)


Ref.__getitem__ = get  # type: ignore[attr-defined]
Ref.__setitem__ = set  # type: ignore[attr-defined]
Ref.at = property(RefAt)  # type: ignore[attr-defined]
Ref.addupdate = _addupdate_method  # type: ignore[attr-defined]
for _name, _method in {
    "get": _get_method,
    "set": _set_method,
    "swap": _swap_method,
    "addupdate": _addupdate_method,
}.items():
    setattr(Tracer, _name, _MethodOfReferences(_name, _method))
