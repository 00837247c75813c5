"""``polyax.extend.linear_util``: functions with layers of transformations around them, which may keep something.

A layer is a function ``(f, *settings, *args) -> result``, which calls ``f``; one that keeps something gets an
``AuxStore`` after ``f``. The older form is a generator: it yields arguments, gets the result, and yields another one.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from polyax.ir.config import config
from polyax.ir.source import DebugInfo
from polyax.trace.flat import name_of

__all__ = [
    "AuxStore", "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation", "transformation2",
    "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]  # fmt: skip


class StoreException(Exception):
    """A store was read before it was filled, or filled twice."""


class AuxStore:
    """A place for one value; one that takes equal values again if ``again``."""

    def __init__(self, again: bool = False) -> None:
        self._kept: list[Any] = []
        self._again = again

    def store(self, val: Any) -> None:
        """Keeps ``val``.

        Raises:
          StoreException: another value is kept.
        """
        if self._kept and not (self._again and self._kept[0] == val):
            raise StoreException(f"Store occupied: it holds {self._kept[0]!r}, and was to hold {val!r}")
        self._kept[:] = [val]

    def reset(self) -> None:
        """Forgets the value."""
        self._kept.clear()

    @property
    def val(self) -> Any:
        """The value.

        Raises:
          StoreException: there is none yet.
        """
        if not self._kept:
            raise StoreException("Store empty: the function that fills it wasn't called")
        return self._kept[0]

    def __bool__(self) -> bool:
        return bool(self._kept)


class WrappedFun:
    """A function ``f`` under layers of transformations: ``call_wrapped`` calls it through all of them.

    Attributes:
      transforms: the layers and their settings, outermost first.
      stores: what layers keep their values in, or None, in the same order.
      params: keyword arguments of ``f``, as pairs.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        f_transformed: Callable[..., Any],
        transforms: tuple[Any, ...],
        stores: tuple[AuxStore | None, ...],
        params: tuple[tuple[str, Any], ...],
        in_type: Any = None,
        debug_info: DebugInfo | None = None,
    ) -> None:
        self.f = f
        self.f_transformed = f_transformed
        self.transforms = transforms
        self.stores = stores
        self.params = params
        self.in_type = in_type
        self.debug_info = debug_info or DebugInfo.of(f)

    @property
    def __name__(self) -> str:
        return name_of(self.f)

    def wrap(self, gen: Callable[..., Any], gen_static_args: tuple[Any, ...], out_store: AuxStore | None) -> WrappedFun:
        """The function under one more layer."""
        layer = functools.partial(gen, self.f_transformed, *([out_store] if out_store is not None else []))
        transformed = functools.partial(layer, *gen_static_args)
        transforms = (gen, gen_static_args), *self.transforms
        return WrappedFun(
            self.f, transformed, transforms, (out_store, *self.stores), self.params, None, self.debug_info
        )

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the outermost layer."""
        return self.f_transformed(*args, **kwargs)

    def populate_stores(self, stores: Sequence[AuxStore | None]) -> None:
        """Fills the stores with what others hold."""
        for mine, other in zip(self.stores, stores, strict=True):
            if mine is not None and other is not None:
                mine.store(other.val)

    def replace_debug_info(self, dbg: DebugInfo) -> WrappedFun:
        """The same function under another name."""
        return WrappedFun(self.f, self.f_transformed, self.transforms, self.stores, self.params, self.in_type, dbg)

    def with_unknown_names(self) -> WrappedFun:
        """The same function, of whose arguments and results no names are known."""
        return self.replace_debug_info(self.debug_info.with_unknown_names())

    def _key(self) -> tuple[Any, ...]:
        return self.transforms, self.params, self.in_type

    def __hash__(self) -> int:
        return hash((self.f, *self._key()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self.f == other.f and self._key() == other._key()

    def __repr__(self) -> str:
        layers = [f"{name_of(gen)} {settings}" for gen, settings in self.transforms]
        return "\n".join([f"Wrapped function: {self.__name__}", *layers])


def wrap_init(
    f: Callable[..., Any], params: dict[str, Any] | None = None, *, debug_info: DebugInfo | None = None
) -> WrappedFun:
    """``f`` without layers.

    Args:
      params: keyword arguments that it is called with.
      debug_info: what error texts say of it.

    >>> wrap_init(lambda x: x + 1).call_wrapped(2)
    3
    """
    kept = tuple(sorted((params or {}).items()))
    return WrappedFun(f, functools.partial(f, **params) if params else f, (), (), kept, None, debug_info)


def _as_decorator(apply: Callable[..., Any]) -> Callable[..., Any]:
    """``apply(gen, fun, *settings)``; with ``gen`` alone it gives the function of the others."""

    @functools.wraps(apply)
    def applied(gen: Callable[..., Any], *fun_and_settings: Any, **options: Any) -> Any:
        if fun_and_settings:
            return apply(gen, *fun_and_settings, **options)
        return functools.wraps(gen)(functools.partial(apply, gen, **options))

    return applied


@_as_decorator
def transformation2(gen: Callable[..., Any], fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """``fun`` under the layer ``gen(f, *gen_static_args, *args)``. Also a decorator of ``gen``.

    >>> @transformation2
    ... def doubled(f, times, x):
    ...     return times * f(x)
    >>> doubled(wrap_init(lambda x: x + 1), 2).call_wrapped(3)
    8
    """
    return fun.wrap(gen, gen_static_args, None)


@_as_decorator
def transformation_with_aux2(
    gen: Callable[..., Any], fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False, unk_names: bool = False
) -> tuple[WrappedFun, Callable[[], Any]]:
    """The same for ``gen(f, store, *gen_static_args, *args)``, and a function that gives what was stored.

    Args:
      use_eq_store: the same value may be stored again.
      unk_names: names of arguments are lost.
    """
    store = AuxStore(again=use_eq_store)
    wrapped = fun.wrap(gen, gen_static_args, store)
    return (wrapped.with_unknown_names() if unk_names else wrapped), lambda: store.val


@_as_decorator
def transformation(gen: Callable[..., Any], fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """``fun`` under a layer that is a generator: it yields arguments and keyword arguments, gets the result, and yields
    another one."""
    return fun.wrap(_steps(gen), gen_static_args, None)


@_as_decorator
def transformation_with_aux(
    gen: Callable[..., Any], fun: WrappedFun, *gen_static_args: Any
) -> tuple[WrappedFun, Callable[[], Any]]:
    """The same for a generator that yields a pair at last: the result, and what is to be kept."""
    store = AuxStore()
    return fun.wrap(_steps_with_aux(gen), gen_static_args, store), lambda: store.val


@functools.lru_cache(None)
def _steps(gen: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(gen)
    def layer(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        running = gen(*args, **kwargs)
        given, named = next(running)
        return running.send(f(*given, **named))

    return layer


@functools.lru_cache(None)
def _steps_with_aux(gen: Callable[..., Any]) -> Callable[..., Any]:
    steps = _steps(gen)

    @functools.wraps(gen)
    def layer(f: Callable[..., Any], store: AuxStore, *args: Any, **kwargs: Any) -> Any:
        result, aux = steps(f, *args, **kwargs)
        store.store(aux)
        return result

    return layer


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """What one of two layers has stored, and whether it was the first.

    Raises:
      StoreException: neither has, or both have.
    """
    found = [(first, value) for first, aux in ((True, aux1), (False, aux2)) for value in _stored(aux)]
    if len(found) != 1:
        raise StoreException("neither store occupied" if not found else "both stores occupied")
    return found[0]


def _stored(aux: Callable[[], Any]) -> list[Any]:
    try:
        return [aux()]
    except StoreException:
        return []


def cache(call: Callable[..., Any], *, explain: Callable[..., None] | None = None) -> Callable[..., Any]:
    """``call(fun, *args)``, remembered by what ``fun`` is made of, the other arguments and the settings in force.

    What layers store is stored again when a result is remembered. Results live as long as the function does.

    Args:
      explain: called as ``explain(fun, is_first, remembered, key, seconds)`` when nothing is remembered.
    """
    known: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()
    adding = threading.Lock()

    @functools.wraps(call)
    def remembered(fun: WrappedFun, *args: Any) -> Any:
        with adding:
            kept = known.setdefault(fun.f, {})
        key = fun.transforms, fun.params, fun.in_type, args, config.trace_key()
        if key in kept:
            result, stores = kept[key]
            fun.populate_stores(stores)
            return result
        if explain is not None:
            explain(fun, not kept, kept, key, 0.0)
        result = call(fun, *args)
        kept[key] = result, fun.stores
        return result

    remembered.cache_clear = known.clear  # pyright: ignore[reportAttributeAccessIssue]
    remembered.evict_function = lambda f: known.pop(f, None)  # pyright: ignore[reportAttributeAccessIssue]
    return remembered
