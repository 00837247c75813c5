"""``jit``: argument handling, the cache of traces, and the short way from a call to its compiled program."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import MethodType
from typing import Any

from polyax.api import misses
from polyax.api.arguments import check_arrays, shaped
from polyax.api.positions import Positions
from polyax.api.stages import Lowered, Parts, Traced
from polyax.control.calls.jit import call
from polyax.ir.aval import aval_of
from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr, eval_jaxpr
from polyax.ir.primitive import ambient
from polyax.runtime.arrays.array import Array
from polyax.runtime.contract.backend import Device
from polyax.runtime.contract.tracebacks import api_boundary, show_user_frames
from polyax.runtime.running import dispatch
from polyax.trace.context import axis_env
from polyax.trace.flat import Flat, arg_names, check_callable, name_of
from polyax.trace.recording import SourceOf, trace_to_jaxpr
from polyax.trace.tracer import Tracer
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Compiles ``fun``: it is traced once for each combination of argument types and static values.

    Args:
      fun: a pure function of pytrees of arrays; without it, a decorator is returned.
      static_argnums, static_argnames: arguments that are part of the program; they must be hashable.
      donate_argnums, donate_argnames: arguments whose memory may be reused; they can't be used afterwards.
      keep_unused: kept for compatibility; arguments that the program doesn't need cost nothing.
      device, backend: where to run; by default where the arguments are, or on the default device.
      inline: whether the program is spliced into the program of a function that calls it.
      in_shardings, out_shardings, compiler_options: must be None.

    >>> jit(lambda x: x + 1)(1).item()
    2
    """
    for name, value in (
        ("in_shardings", in_shardings),
        ("out_shardings", out_shardings),
        ("compiler_options", compiler_options),
    ):
        if value is not None:
            raise NotImplementedError(f"jit: {name} is not supported yet, got {value!r}")
    settings = (static_argnums, static_argnames, donate_argnums, donate_argnames, device, backend, inline)
    if fun is None:
        return lambda f: JitFunction(f, *settings)
    return JitFunction(fun, *settings)


class _Call:
    """One call, taken apart: leaves of the dynamic arguments, and everything else, which the trace depends on."""

    __slots__ = ("in_tree", "leaves", "static")

    def __init__(self, leaves: list[Any], in_tree: PyTreeDef, static: tuple[Any, ...]) -> None:
        self.leaves = leaves
        self.in_tree = in_tree
        self.static = static


class _Trace:
    """A traced function: its program and the structure of its results."""

    __slots__ = ("closed", "donated", "out_tree")

    def __init__(self, closed: ClosedJaxpr, out_tree: PyTreeDef, donated: tuple[bool, ...]) -> None:
        self.closed = closed
        self.out_tree = out_tree
        self.donated = donated


def _with_static(fun: Callable[..., Any], static: Sequence[tuple[Any, type, Any]]) -> Callable[..., Any]:
    """``fun`` of the dynamic arguments alone."""

    @functools.wraps(fun)
    def dynamic(*xs: Any, **kw: Any) -> Any:
        positional, named = list(xs), dict(kw)
        for which, _, value in static:
            if isinstance(which, int):
                positional.insert(which, value)
            else:
                named[which] = value
        return fun(*positional, **named)

    return dynamic


_functions: weakref.WeakSet[JitFunction] = weakref.WeakSet()


def clear_caches() -> None:
    """Forgets all traces and compiled programs: what is called next is traced and compiled anew."""
    for fun in _functions:
        fun.clear_cache()
    dispatch.clear_caches()


class JitFunction:
    """What ``jit`` returns."""

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: Any,
        static_argnames: Any,
        donate_argnums: Any,
        donate_argnames: Any,
        device: Any,
        backend: str | None,
        inline: bool,
    ) -> None:
        check_callable(fun)
        self.__wrapped__ = fun
        self.__name__ = name_of(fun)
        self.__qualname__ = getattr(fun, "__qualname__", self.__name__)
        self.__doc__ = fun.__doc__
        self.__module__ = fun.__module__
        self._static = Positions("static", fun, static_argnums, static_argnames)
        self._donate = Positions("donate", fun, donate_argnums, donate_argnames)
        self._donate.refuse_overlap(self._static)
        if device is not None and not isinstance(device, Device):
            raise TypeError(f"jit: device must be a Device, such as polyax.devices('cpu')[0], got {device!r}")
        self._device = dispatch.device_of(device, backend)
        self._inline = inline
        self._plain = not (self._static.nums or self._static.names)
        self._traces: dict[misses.Key, _Trace] = {}
        self._entries: dict[Any, Callable[[Sequence[Any]], Any]] = {}  # by types of arguments that are all arrays
        _functions.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            if ambient.trace is None and not kwargs:
                key = (config.trace_key(), *[x.aval for x in args if type(x) is Array])
                if len(key) == len(args) + 1:
                    entry = self._entries.get(key)
                    if entry is not None:
                        return entry(args)
            return self._call(args, kwargs)
        except Exception as e:
            show_user_frames(e)
            raise

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if config.disable_jit:
            return self.__wrapped__(*args, **kwargs)
        parts = self._split(args, kwargs)
        avals = tuple([x.aval if type(x) is Array else self._aval(x, args, kwargs) for x in parts.leaves])
        key = misses.Key(parts.in_tree, parts.static, avals, config.trace_key())
        evaluating = ambient.trace is None
        if not evaluating and axis_env():  # sizes of named axes are part of a program
            key = key._replace(axes=tuple(axis_env().items()))
        if evaluating:
            entry = self._entries.get(key)
            if entry is not None:
                return entry(parts.leaves)
        traced = self._traces.get(key)
        if traced is None:
            traced = self._trace(key, parts, avals, args, kwargs)
        if not evaluating:
            return tree_unflatten(traced.out_tree, self._bind(traced, parts.leaves))
        for x in parts.leaves:
            if isinstance(x, Tracer):
                raise dispatch.leaked(x)
        return self._compile(key, traced, parts, args, kwargs)(parts.leaves)

    @api_boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The program for arguments of these types: arrays, or ``ShapeDtypeStruct``."""
        traced, parts, device = self._staged(args, kwargs)
        dynamic = _with_static(self.__wrapped__, parts.static) if parts.static else self.__wrapped__
        return Traced(
            Parts(traced.closed, dynamic, self.__name__, parts.in_tree, traced.out_tree, device, traced.donated)
        )

    def lower(self, *args: Any, lowering_platforms: Sequence[str] | None = None, **kwargs: Any) -> Lowered:
        """``trace(...).lower()``."""
        return self.trace(*args, **kwargs).lower(lowering_platforms=lowering_platforms)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the results, as ``ShapeDtypeStruct``."""
        return self.trace(*args, **kwargs).out_info

    def program(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[ClosedJaxpr, Device, tuple[bool, ...]]:
        """The program for these arguments, the device that it would run on, and which of its inputs are donated."""
        traced, _, device = self._staged(args, kwargs)
        return traced.closed, device, traced.donated

    def _staged(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Trace, _Call, Device]:
        parts = self._split(args, kwargs)
        avals = tuple([shaped(x) if hasattr(x, "shape") else self._aval(x, args, kwargs) for x in parts.leaves])
        key = misses.Key(parts.in_tree, parts.static, avals, config.trace_key())
        traced = self._traces.get(key) or self._trace(key, parts, avals, args, kwargs)
        device = dispatch.choose_device(self._device, [*traced.closed.consts, *parts.leaves])
        return traced, parts, device

    def _aval(self, x: Any, args: Any, kwargs: Any) -> Any:
        try:
            return aval_of(x)
        except TypeError:
            check_arrays((args, kwargs), f"an argument of jit({self.__name__})")
            raise

    def _split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
        if self._plain:
            leaves, in_tree = tree_flatten((args, kwargs))
            return _Call(leaves, in_tree, ())
        static = tuple((i, args[i]) for i in sorted(self._static.nums) if i < len(args))
        static += tuple((n, kwargs[n]) for n in sorted(self._static.names) if n in kwargs)
        for which, value in static:
            try:
                hash(value)
            except TypeError:
                raise ValueError(
                    f"Non-hashable static arguments are not supported. Argument {which!r} of "
                    f"{self.__name__} is of type "
                    f"{type(value)}, which is not hashable: {value!r}. Use a tuple instead of a list or an array."
                ) from None
        dynamic = tuple(a for i, a in enumerate(args) if i not in self._static.nums)
        named = {n: v for n, v in kwargs.items() if n not in self._static.names}
        leaves, in_tree = tree_flatten((dynamic, named))
        # equal values of different types (1, 1.0, True) make different programs
        return _Call(leaves, in_tree, tuple((which, type(v), v) for which, v in static))

    def _trace(self, key: misses.Key, parts: _Call, avals: Sequence[Any], args: Any, kwargs: Any) -> _Trace:
        fun, static = self.__wrapped__, parts.static
        flat = Flat(_with_static(fun, static) if static else fun, parts.in_tree)

        def names() -> list[str]:
            return arg_names(fun, args, kwargs, self._static.names)

        misses.note(fun, self._traces, key, names)
        closed = trace_to_jaxpr(flat, avals, name=self.__name__, origin=SourceOf(fun, names))
        assert flat.out_tree is not None
        traced = _Trace(closed, flat.out_tree, self._donated(args, kwargs))
        if not any(isinstance(c, Tracer) for c in closed.consts):  # else it belongs to the surrounding trace
            self._traces[key] = traced
        return traced

    def _donated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, ...]:
        if not self._donate.nums and not self._donate.names:
            return ()
        out: list[bool] = []
        for i, a in enumerate(args):
            if i not in self._static.nums:
                out += [i in self._donate.nums] * len(tree_flatten(a)[0])
        for n in sorted(kwargs):
            if n not in self._static.names:
                out += [n in self._donate.names] * len(tree_flatten(kwargs[n])[0])
        return tuple(out)

    def _bind(self, traced: _Trace, leaves: Sequence[Any]) -> list[Any]:
        if self._inline:
            return eval_jaxpr(traced.closed.jaxpr, traced.closed.consts, leaves)
        return call(
            traced.closed,
            leaves,
            name=self.__name__,
            donated=traced.donated,
            inline=False,
            keep_unused=False,
            device=self._device,
        )

    def _compile(
        self, key: misses.Key, traced: _Trace, parts: _Call, args: Any, kwargs: Any
    ) -> Callable[[Sequence[Any]], Any]:
        """The entry for this kind of call. Calls with arrays alone are found by their types without flattening."""
        device = dispatch.choose_device(self._device, [*traced.closed.consts, *parts.leaves])
        program = dispatch.compile_program(traced.closed, device, self.__name__, traced.donated)
        fixed = self._device is not None
        entry = dispatch.make_entry(
            program, traced.closed.consts, traced.out_tree, lambda xs: self._moved(traced, xs), fixed
        )
        self._entries[key] = entry
        if self._plain and not kwargs and parts.leaves and all(type(a) is Array for a in args):
            self._entries[(key.settings, *[a.aval for a in args])] = entry
        return entry

    def _moved(self, traced: _Trace, leaves: Sequence[Any]) -> Any:
        """A call whose arguments are on another device than those of the first call of this kind."""
        device = dispatch.choose_device(self._device, [*traced.closed.consts, *leaves])
        program = dispatch.compile_program(traced.closed, device, self.__name__, traced.donated)
        return tree_unflatten(traced.out_tree, program.run([*traced.closed.consts, *leaves]))

    def clear_cache(self) -> None:
        """Forgets all traces and programs of this function."""
        self._traces.clear()
        self._entries.clear()

    def _cache_size(self) -> int:
        return len(self._traces)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<PjitFunction of {self.__wrapped__!r}>"
