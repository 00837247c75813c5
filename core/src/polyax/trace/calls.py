"""Calls of users' functions, taken apart: what is static, the leaves of the rest, and the function of these leaves.

All that trace a function on demand begin here. Must not know what is done with the programs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of, is_array_like, not_an_array
from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.lazy import lazy
from polyax.ir.primitive import ambient
from polyax.ir.refs import met
from polyax.trace.aliases import refuse_both, refuse_returned, refuse_twice
from polyax.trace.flat import TO_SET, Flat, arg_names, check_callable, leaf_names, name_of
from polyax.trace.positions import UNMARKED, Positions
from polyax.trace.recording import SourceOf, trace_to_jaxpr
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_leaves, tree_structure
from polyax.trace.views import opened

Marks = tuple[Any, Any]
"""Positions and names, as users give them; None where the other tells them."""
Static = tuple[tuple[Any, type, Any], ...]
"""``(position or name, type, value)``: equal values of different types (1, 1.0, True) make different programs."""


@dataclass(frozen=True)
class Fixed:
    """A static value in its place among the arguments: a leaf, whatever it is."""

    type: type
    value: Any


class Key(NamedTuple):
    """What a program depends on, besides the function. ``settings`` stand for the flags that traces read, ``axes`` are
    the names and sizes of those that are mapped around the call."""

    in_tree: PyTreeDef
    static: Static
    avals: tuple[ShapedArray, ...]
    settings: int
    axes: tuple[tuple[Any, int], ...] = ()


@dataclass(frozen=True)
class TracedFunction:
    """The program of a function for one kind of call, the structure of its results, and which inputs are donated."""

    closed: ClosedJaxpr
    out_tree: PyTreeDef
    donated: tuple[bool, ...] = ()


class Signature:
    """A function whose calls are taken apart.

    Args:
      caller: the transformation that it is given to, for error texts.
      option: how that transformation names its static arguments: ``static``, ``nondiff``.
      too_few: the error text if a static position is beyond the arguments of a call, with ``{given}``, ``{count}`` and
        ``{s}`` of the plural; without it, such arguments may be given by name or left out.
      hashable: whether static values must be.
      traced_for: what it is traced for, in error texts, if not for the caller.
      aliases: whether one reference may come as several arguments.
      views: whether arguments may be parts of references.

    Raises:
      ValueError: the function has no such parameters, or static ones are donated.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        caller: str = "jit",
        static: Marks | None = None,
        donate: Marks | None = None,
        *,
        option: str = "static",
        too_few: str = "",
        hashable: bool = True,
        traced_for: str = "",
        aliases: bool = False,
        views: bool = False,
    ) -> None:
        check_callable(fun)
        self.fun = fun
        self.caller = caller
        self.traced_for = traced_for or caller
        self.static = Positions(option, fun, caller, *static, late=bool(too_few)) if static else UNMARKED
        self.donate = Positions("donate", fun, caller, *donate) if donate else UNMARKED
        if self.donate:
            self.donate.refuse_overlap(self.static)
        self.too_few = too_few
        self.hashable = hashable
        self.aliases = aliases
        self.views = views
        self.plain = not (self.static or self.static.given)

    @property
    def name(self) -> str:
        return name_of(self.fun)

    @lazy
    def parameters(self) -> inspect.Signature | None:
        """What the function takes, if it tells."""
        try:
            return inspect.signature(self.fun)
        except (TypeError, ValueError):
            return None

    def split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> UserCall:
        """A call, taken apart.

        Raises:
          ValueError: a static argument is missing, or has no hash.
        """
        if self.plain:
            return UserCall(self, args, kwargs, (args, kwargs), ())
        count, names = len(args), self.static.names
        if self.too_few and not all(-count <= n < count for n in self.static.given):
            raise ValueError(self.too_few.format(given=self.static.given, count=count, s="s"[: count != 1]))
        fixed = self.static.at(count)
        static = [(n, args[n]) for n in fixed] + [(n, kwargs[n]) for n in sorted(names & kwargs.keys())]
        if self.hashable:
            self._check_hashes(static)
        dynamic = tuple([x for n, x in enumerate(args) if n not in fixed])
        named = {n: x for n, x in kwargs.items() if n not in names}
        return UserCall(self, args, kwargs, (dynamic, named), tuple([(which, type(x), x) for which, x in static]))

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments of a call, defaults included, by position.

        Raises:
          TypeError: they don't fit the function, or some can only be given by name.
        """
        if self.parameters is None or isinstance(self.fun, functools.partial):  # whose parameters may be set already
            if kwargs:
                raise TypeError("it has no signature, so its arguments must be given by position")
            return args
        bound = self.parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            names = ", ".join(bound.kwargs)
            raise TypeError(f"The following keyword arguments could not be resolved to positions: {names}")
        return bound.args

    def _check_hashes(self, static: Sequence[tuple[Any, Any]]) -> None:
        for which, value in static:
            try:
                hash(value)
            except TypeError as e:
                raise ValueError(
                    "Non-hashable static arguments are not supported. An error occurred in a call of "
                    f"{self.name} while trying to hash an object of type {type(value)}, {value}. The error was:\n"
                    f"{type(e).__name__}: {e}\nIt is argument {which!r}. Use a tuple instead of a list, and pass "
                    "arrays as arguments that are not static."
                ) from None


_SURE = 2**31
"""Integers below it fit the type of integers, whatever that is."""

_METADATA = (
    "Exception raised while checking equality of metadata fields of pytree. They must be comparable using __eq__, as "
    "arrays aren't"
)


class UserCall:
    """One call: the leaves of its dynamic arguments, their structure, and the static ones."""

    __slots__ = ("args", "in_tree", "kwargs", "leaves", "signature", "static")

    def __init__(self, signature: Signature, args: Any, kwargs: dict[str, Any], dynamic: Any, static: Static) -> None:
        self.signature = signature
        self.args = args
        self.kwargs = kwargs
        self.leaves, self.in_tree = tree_flatten(opened(dynamic) if signature.views else dynamic)
        self.static = static

    def incomparable(self, error: Exception) -> ValueError:
        """What to say of static arguments, or of what nodes of trees hold beside arrays, when ``==`` fails."""
        given = ", ".join(f"{which!r} of type {kind.__name__}" for which, kind, _ in self.static)
        what = f"static arguments should be comparable using __eq__: {given}" if given else _METADATA
        return ValueError(
            f"{what}, to tell whether {self.signature.name} was compiled for them: {type(error).__name__}: {error}"
        )

    def whole(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """All arguments, those that are static as ``Fixed``."""
        fixed = {which: Fixed(kind, x) for which, kind, x in self.static}
        args = tuple([fixed.get(n, x) for n, x in enumerate(self.args)])
        return args, {n: fixed.get(n, x) for n, x in self.kwargs.items()}

    def aval(self, x: Any) -> ShapedArray:
        """The type of a leaf.

        Raises:
          OverflowError: it is an integer that the type of integers doesn't have.
          TypeError: it is no array; the text says which it is.
        """
        if type(x) is int and not -_SURE <= x < _SURE:
            self._check_range(x)
        try:
            return aval_of(x)
        except TypeError:
            if is_array_like(x):
                raise
            raise self._refused(x) from None

    def _check_range(self, x: int) -> None:
        limits = dtypes.iinfo(dtypes.default_int())
        if self.signature.traced_for == "jit" and not limits.min <= x <= limits.max:
            raise OverflowError(
                "An overflow was encountered while parsing an argument to a jitted computation, whose argument path is "
                f"{self._name(x)}. Got {int} with value {x}, which {dtypes.default_int().name} can't hold."
            )

    def _name(self, x: Any) -> str:
        """That of a leaf."""
        return next(n for n, leaf in zip(self.names(), self.leaves, strict=True) if leaf is x)

    def _refused(self, x: Any) -> TypeError:
        """The error about a leaf that is no array."""
        signature = self.signature
        name = self._name(x)
        told = f"Argument {name} of {signature.caller}({signature.name}) is {x!r}. {TO_SET}"
        if signature.traced_for != "jit":
            return not_an_array(x, f": {told}")
        return TypeError(
            f"Error interpreting argument to {signature.fun} as an abstract array. The problematic value is of type "
            f"{type(x)} and was passed to the function at path {name}.\n{told}"
        )

    def key(self, avals: Sequence[ShapedArray] | None = None) -> Key:
        """What the program for this call depends on; ``avals`` are those of the leaves, if they are known."""
        if avals is None:
            avals = [self.aval(x) for x in self.leaves]
        axes = axes_around() if ambient.axis_env else ()
        return Key(self.in_tree, self.static, tuple(avals), config.trace_key(), axes)

    def flat(self) -> Flat:
        """The function of the leaves."""
        return Flat(with_static(self.signature.fun, self.static), self.in_tree)

    def source(self) -> SourceOf:
        in_tree = tree_structure(self._without_static()) if self.static else self.in_tree
        return SourceOf(self.signature.fun, self.names, self.signature.traced_for, in_tree)

    def names(self) -> list[str]:
        """A name for each leaf."""
        return arg_names(self.signature.fun, *self._without_static())

    def _without_static(self) -> tuple[Any, Any]:
        """The arguments, None in place of those that are static, which has no leaves."""
        static = {which for which, _, _ in self.static}
        args = [None if n in static else x for n, x in enumerate(self.args)]
        whole = args, {n: None if n in static else x for n, x in self.kwargs.items()}
        return opened(whole) if self.signature.views else whole

    def record(self, avals: Sequence[ShapedArray]) -> TracedFunction:
        """The program for leaves of these types."""
        flat = self.flat()
        closed = trace_to_jaxpr(flat, avals, name=self.signature.name, origin=self.source())
        assert flat.out_tree is not None
        if met.any:
            if not self.signature.aliases:
                self.refuse_aliases(closed.consts)
            refuse_returned(closed, flat.out_tree, self.source())
        return TracedFunction(closed, flat.out_tree, self.donated())

    def refuse_aliases(self, consts: Sequence[Any] = ()) -> None:
        """Raises ValueError if a reference comes as two arguments, or as one and among ``consts``."""
        self.refusal()(self.leaves, consts)

    def refusal(self) -> Callable[[Sequence[Any], Sequence[Any]], None]:
        """The same for the leaves of other calls of this kind."""
        signature, in_tree, static = self.signature, self.in_tree, self.static
        names = lambda: leaf_names(with_static(signature.fun, static), in_tree)
        source = SourceOf(signature.fun, names, signature.traced_for)

        def refuse(leaves: Sequence[Any], consts: Sequence[Any]) -> None:
            refuse_twice(leaves, source)
            refuse_both(consts, leaves, source)

        return refuse

    def donated(self) -> tuple[bool, ...]:
        """Which leaves are donated; nothing if none is."""
        donate = self.signature.donate
        if not donate:
            return ()
        positions = donate.at(len(self.args))
        args, kwargs = self._without_static()
        marked = [(n in positions, x) for n, x in enumerate(args)]
        marked += [(n in donate.names, kwargs[n]) for n in sorted(kwargs)]
        return tuple([m for m, x in marked for _ in tree_leaves(x)])


def axes_around() -> tuple[tuple[Any, int], ...]:
    """Names and sizes; those that types tell of in front."""
    return (*((name, 0) for name in sorted(ambient.varying, key=str)), *ambient.axis_env.items())


def with_static(fun: Callable[..., Any], static: Static) -> Callable[..., Any]:
    """``fun`` of the dynamic arguments alone."""
    if not static:
        return fun

    @functools.wraps(fun)
    def dynamic(*xs: Any, **named: Any) -> Any:
        return fun(*completed(xs, static), **named, **{n: x for n, _, x in static if isinstance(n, str)})

    return dynamic


def completed(dynamic: Sequence[Any], static: Static) -> list[Any]:
    """The positional arguments, of which ``dynamic`` are given."""
    positional = list(dynamic)
    for which, _, value in static:
        if not isinstance(which, str):
            positional.insert(which, value)
    return positional
