"""``jit``: what it returns, its stages, and the short way from a call to its compiled program."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from types import EllipsisType, FunctionType, MethodType
from typing import Any

from polyax.api.arguments import shapes
from polyax.api.shardings import (
    Asked,
    check_committed,
    check_fit,
    check_leaves,
    constrained,
    names_of_results,
    of_arguments,
    of_results,
    on_devices,
)
from polyax.api.stages import Lowered, Parts, Traced, check_options
from polyax.control.calls.jit import call as bind_call
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config, trace_keys
from polyax.ir.garbage import collection_paused
from polyax.ir.jaxpr import eval_jaxpr
from polyax.ir.primitive import ambient
from polyax.ir.refs import has_refs, met
from polyax.meshes.current import mesh_in_force
from polyax.meshes.explicit import seen, sharding_of, told
from polyax.runtime.arrays.array import Array, is_concrete
from polyax.runtime.contract.backend import Device
from polyax.runtime.contract.tracebacks import api_boundary, show_user_frames, warn_user
from polyax.runtime.plugins.default_device import default_device_now
from polyax.runtime.running import dispatch
from polyax.runtime.running.meeting import layouts_of
from polyax.runtime.running.programs import Entry, Moved
from polyax.runtime.running.staged import Staged, entry_of, staged, without_unread
from polyax.runtime.running.whole import QuickCalls
from polyax.trace.calls import Key, Signature, Static, TracedFunction, UserCall, with_static
from polyax.trace.flat import leaf_names
from polyax.trace.tracer import Tracer
from polyax.trace.traces import Traces, clear_traces, keep
from polyax.trace.tree import PyTreeDef, tree_unflatten
from polyax.trace.views import holds_parts


def jit(
    fun: Callable[..., Any] | EllipsisType = ...,
    /,
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
      donate_argnums, donate_argnames: arguments whose memory results may have; those that one has can't be used
        afterwards, others are kept, with a warning.
      keep_unused: whether arguments that it doesn't read are taken too if they are donated; they cost nothing anyway.
      device, backend: where to run; by default where the arguments are, or on the default device.
      inline: whether the program is spliced into the program of a function that calls it.
      in_shardings, out_shardings: how arguments and results lie on devices: shardings, or ``PartitionSpec`` of the
        mesh in force, in trees that those of arguments and results begin with; None leaves it open: arguments stay
        as they lie, results as the partitioner chooses.
      compiler_options: settings of XLA, which change nothing here; what isn't one is refused when it is compiled.

    >>> jit(lambda x: x + 1)(1).item()
    2
    """
    options = None if compiler_options is None else dict(compiler_options.items())
    for name, value in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
        if value is not None and (device is not None or backend is not None):
            raise ValueError(f"If backend or device is specified on jit, then {name} should not be specified.")
        check_leaves(name, value)
    if device is not None or backend is not None:
        warn_user(
            "backend and device argument on jit is deprecated. You can use `jax.device_put(..., "
            'jax.local_devices(backend="cpu")[0])` on the inputs to the jitted function to get the same behavior.',
            DeprecationWarning,
        )
    settings = (static_argnums, static_argnames, donate_argnums, donate_argnames, device, backend, inline)
    settings = (*settings, in_shardings, out_shardings, options, keep_unused)
    if fun is ...:
        return lambda f: PjitFunction(f, *settings)
    return PjitFunction(fun, *settings)


def clear_caches() -> None:
    """Forgets all traces and compiled programs: what is called next is traced and compiled anew."""
    clear_traces()
    dispatch.clear_caches()


class PjitFunction:
    """What ``jit`` returns. Libraries know it by the name of its class, which is JAX's."""

    _refuses_meshes = True
    """With a device of its own it has no place on the mesh in force."""

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
        in_shardings: Any = None,
        out_shardings: Any = None,
        options: dict[str, Any] | None = None,
        keep_unused: bool = False,
    ) -> None:
        if type(fun) is FunctionType:
            self.__dict__.update(fun.__dict__)
        self._signature = Signature(
            fun, "jit", static=(static_argnums, static_argnames), donate=(donate_argnums, donate_argnames), views=True
        )
        self.__wrapped__ = fun
        self.__name__ = self._signature.name
        self.__qualname__ = getattr(fun, "__qualname__", self.__name__)
        self.__doc__ = fun.__doc__
        self.__module__ = fun.__module__
        if device is not None and not isinstance(device, Device):
            raise TypeError(f"jit: device must be a Device, such as polyax.devices('cpu')[0], got {device!r}")
        self._device = dispatch.device_of(device, backend)
        self._inline = inline
        self._options = options
        self._keep_unused = bool(keep_unused)
        self._shardings = in_shardings, out_shardings
        self._quick = QuickCalls()
        self._traces = Traces(self._signature, self._quick)
        self._entries: dict[Any, Callable[[Sequence[Any]], Any]] = self._traces.entries

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            if ambient.trace is None:
                settings = config.call_key()
                quick = self._quick.own.get(settings)
                if quick is not None:
                    made = quick[0](args, kwargs)
                    if made is NotImplemented and len(quick) > 1:
                        made = self._quick.others(settings, args, kwargs)
                    if made is not NotImplemented:
                        return made
                elif not (kwargs or self._quick.waiting):
                    return self.usual(args, kwargs, trace_keys[settings])
            return self.usual(args, kwargs)
        except Exception as e:
            show_user_frames(e)
            raise

    def usual(self, args: tuple[Any, ...], kwargs: dict[str, Any], settings: int | None = None) -> Any:
        """A call that isn't native. ``settings``: under which one with arrays alone may be known by their types."""
        if settings is not None:
            key: list[Any] = [settings]
            for x in args:
                if type(x) is not Array:
                    break
                key.append(x.aval)
            else:
                entry = self._entries.get(tuple(key))
                if entry is not None:
                    return entry(args)
        return self.slowly(args, kwargs)

    def slowly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call in which no step is left out."""
        if config.disable_jit:
            return self.__wrapped__(*args, **kwargs)
        call = self._signature.split(args, kwargs)
        key = call.key(self._told(call, [x.aval if type(x) is Array else call.aval(x) for x in call.leaves]))
        evaluating = ambient.trace is None
        if evaluating:
            try:
                entry = self._entries.get(key)
            except Exception as e:
                raise call.incomparable(e) from e
            if entry is not None:
                self._quick.met(key, call)
                return entry(call.leaves)
        with collection_paused():
            traced = self._traces.find(key, call)
            if met.any:
                call.refuse_aliases(traced.closed.consts)
            if not evaluating:
                return tree_unflatten(traced.out_tree, self._bind(traced, call))
            for x in call.leaves:
                if isinstance(x, Tracer):
                    raise dispatch.leaked(x)
            entry = self._compile(key, traced, call)
        return entry(call.leaves)

    @api_boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The program for arguments of these types: arrays, or ``ShapeDtypeStruct``."""
        call, traced, program = self._staged(args, kwargs)
        fun = with_static(self.__wrapped__, call.static)
        outs = tuple(of_results(self._shardings[1], traced.out_tree)) if self.places_results else ()
        return Traced(Parts(program, fun, call.in_tree, traced.out_tree, self._options, outs))

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """``trace(...).lower()``."""
        return self.trace(*args, **kwargs).lower()

    @property
    def must_be_outermost(self) -> bool:
        """Whether it was told what gets lost, or can't be, in another function."""
        return self.places_results or bool(self._options)

    @property
    def places_results(self) -> bool:
        """Whether it was told how results lie."""
        return self._shardings[1] is not None

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the results, as ``ShapeDtypeStruct``."""
        return self.trace(*args, **kwargs).out_info

    def staged(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Staged:
        """The program for these arguments, and where it would run."""
        return self._staged(args, kwargs)[2]

    def _staged(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[UserCall, TracedFunction, Staged]:
        call = self._signature.split(args, kwargs)
        traced = self._traces.find(call.key(self._told(call, shapes(call))), call)
        ins, outs = self._asked(traced, call)
        told = [s or (None if is_concrete(x) else sharding_of(x)) for s, x in zip(ins, call.leaves)]
        if met.any and has_refs(traced.closed):
            return call, traced, self._stateful(traced, call, (told, outs))[0]
        program = self._placed(traced, (told, outs), call.leaves, call.names)
        committed = any(is_concrete(x) and x.committed for x in call.leaves)
        return call, traced, replace(program, pinned=program.pinned or committed)

    def _told(self, call: UserCall, avals: list[ShapedArray]) -> list[ShapedArray]:
        """The types of arguments as the function gets them, cut as ``in_shardings`` says."""
        if self._shardings[0] is None or not seen.any:
            return avals
        return [a if s is None else told(a, s) for a, s in zip(avals, self._ins(call), strict=True)]

    def _ins(self, call: UserCall) -> list[Asked]:
        static = {which for which, _, _ in call.static}
        args = tuple([x for n, x in enumerate(call.args) if n not in static])
        return of_arguments(self._shardings[0], args, call.kwargs, call.in_tree)

    def _asked(self, traced: TracedFunction, call: UserCall) -> tuple[list[Asked], list[Asked]]:
        """The shardings that were asked for, of each argument and result."""
        if self._device is not None and self._refuses_meshes and mesh_in_force() is not None:
            raise ValueError(
                "Mesh context manager should not be used with jit when backend or device is also specified as an "
                "argument to jit."
            )
        ins, outs = self._ins(call), of_results(self._shardings[1], traced.out_tree)
        check_fit("in_shardings", "arguments", ins, traced.closed.in_avals, call.names)
        check_fit("out_shardings", "outputs", outs, traced.closed.out_avals, lambda: names_of_results(traced.out_tree))
        return ins, outs

    def _placed(self, traced: TracedFunction, asked: Any, leaves: Sequence[Any], names: Any = None) -> Staged:
        if self._device is not None:
            donated, kept = traced.donated, self._keep_unused
            return Staged(self.__name__, traced.closed, donated, self._device, pinned=True, keep_unused=kept)
        ins, outs = (on_devices(end, leaves) for end in asked)
        check_committed(leaves, ins)
        return staged(self.__name__, traced.closed, traced.donated, (ins, outs), leaves, names, self._keep_unused)

    def _bind(self, traced: TracedFunction, call: UserCall) -> list[Any]:
        ins, outs = self._asked(traced, call)
        leaves = constrained(call.leaves, ins)
        if self._inline and not self._options:
            return constrained(eval_jaxpr(traced.closed.jaxpr, traced.closed.consts, leaves), outs)
        results = bind_call(
            traced.closed,
            leaves,
            name=self.__name__,
            donated=traced.donated,
            inline=False,
            keep_unused=self._keep_unused,
            device=self._device,
            compiler_options=tuple((self._options or {}).items()),
        )
        return constrained(results, outs)

    def _compile(self, key: Key, traced: TracedFunction, call: UserCall) -> Entry:
        """The entry for this kind of call. Calls with arrays alone are found by their types without flattening."""
        check_options(self._options)
        asked = self._asked(traced, call)
        if met.any and has_refs(traced.closed):
            first, move = self._stateful(traced, call, asked)
        else:
            move = self._mover(traced, asked, call)
            if self._without_unread(traced, asked, call.leaves, call.names) is not None:
                return keep(self._entries, key, move)
            first = self._placed(traced, asked, call.leaves, call.names)
        entry = first.entry(traced.out_tree, None if self._device is not None else move)
        keep(self._entries, key, entry)
        if self._shardings[0] is None and not key.axes and not holds_parts((call.args, call.kwargs)):
            self._quick.learn(key, partial(first.native_call, out_tree=traced.out_tree), call)
        args = call.args
        if self._signature.plain and not call.kwargs and not key.axes and args and all(type(a) is Array for a in args):
            keep(self._entries, (key.settings, *key.avals), entry)
        return entry

    def _stateful(self, traced: TracedFunction, call: UserCall, asked: Any) -> tuple[Staged, Moved]:
        """The program of a function with references, and what is done where arguments lie otherwise."""
        from polyax.runtime.running.stateful import Stateful, StatefulStaged  # loaded with the first reference

        state = Stateful(traced)
        asked = state.asked(asked, call.leaves)
        inner = self._placed(state.pure, asked, state.values(call.leaves), state.names(call))
        refuse = call.refusal()
        whole = StatefulStaged(inner.name, traced.closed, traced.donated, inner.where, inner, state, refuse)
        return whole, self._mover(state.pure, asked, None)

    def _mover(self, traced: TracedFunction, asked: Any, call: UserCall | None) -> Moved:
        """``_moved`` for an entry, which doesn't keep this function alive: what is closed over goes when it goes.
        ``call``: one whose leaves have the names of these."""
        alive = weakref.ref(self)
        kind = None if call is None else (call.static, call.in_tree)

        def move(leaves: Sequence[Any]) -> Any:
            function = alive()
            assert function is not None, "entries are found through their function alone"
            return function._moved(traced, asked, leaves, kind)

        return move

    def _moved(
        self, traced: TracedFunction, asked: Any, leaves: Sequence[Any], kind: tuple[Static, PyTreeDef] | None
    ) -> Any:
        """A call whose arguments lie otherwise than those of the first call of this kind."""
        key = traced.closed, layouts_of(leaves), default_device_now()
        entry = self._entries.get(key)
        if entry is None:
            names = kind and (lambda: leaf_names(with_static(self.__wrapped__, kind[0]), kind[1]))
            apart = kind and self._without_unread(traced, asked, leaves, names)
            made = (
                entry_of(apart, traced.out_tree)
                if apart
                else self._placed(traced, asked, leaves, names).entry(traced.out_tree, None)
            )
            entry = keep(self._entries, key, made)
        return entry(leaves)

    def _without_unread(self, traced: TracedFunction, asked: Any, leaves: Sequence[Any], names: Any) -> Any:
        """See ``without_unread``: None if the program is to run with all arguments."""
        if self._keep_unused or self._device is not None or self._shardings[0] is not None:
            return None
        outs = on_devices(asked[1], leaves)
        return without_unread(self.__name__, traced.closed, traced.donated, outs, leaves, names)

    def clear_cache(self) -> None:
        """Forgets all traces and programs of this function."""
        self._traces.clear()

    def _cache_size(self) -> int:
        return len(self._traces)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name == "__annotations__":
            return getattr(self.__wrapped__, name)
        if name != "__signature__":  # asked for where ``__wrapped__`` isn't followed
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return inspect.signature(self.__wrapped__)

    def __repr__(self) -> str:
        try:
            return f"<PjitFunction of {self.__wrapped__!r}>"
        except Exception:
            return "<PjitFunction>"
