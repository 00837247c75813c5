"""What functions with derivative rules of their own share: arguments that aren't differentiated, flattening, checks.

Knows neither forward nor reverse mode.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from polyax.control.calls.family import Dims, Dissolving, Params
from polyax.control.inner.lists import Mask, kept
from polyax.control.inner.programs import hoisted, pruned, run
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of, same_type
from polyax.ir.errors import UnexpectedTracerError
from polyax.ir.jaxpr import ClosedJaxpr, Eqn, is_literal_value
from polyax.ir.primitive import Primitive, ambient
from polyax.ir.source import is_internal
from polyax.ops.basis import as_is, convert
from polyax.ops.zeros import instantiate
from polyax.trace.calls import Signature, UserCall
from polyax.trace.flat import Flat
from polyax.trace.positions import unless_empty
from polyax.trace.recording import DynamicJaxprTrace, trace_to_jaxpr
from polyax.trace.symbolic import Zero
from polyax.trace.tree import PyTreeDef, tree_map, tree_unflatten
from polyax.transforms.vmap import AxisData, batch_flat, match_axis


class SymbolicZero:
    """What a rule that asks for ``symbolic_zeros`` gets in place of a tangent or cotangent that is zero."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval})"


def array_given(t: Any) -> Any:
    """A tangent or cotangent as rules get it: zeros that nobody made are arrays, weakly typed where others would be."""
    zero = instantiate(t)
    scalar = type(t) is Zero and isinstance(zero, (np.generic, int, float, complex))
    return convert(zero, t.aval.dtype, t.aval.weak_type) if scalar else zero


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of each leaf of ``val``: an array, or a ``SymbolicZero``.

    >>> zero_from_primal(2.0).item()
    0.0
    """
    zeros = tree_map(Zero.of, val)
    return tree_map((lambda z: SymbolicZero(z.aval)) if symbolic_zeros else array_given, zeros)


class CustomFunction:
    """A function some of whose arguments (``nondiff``) belong to its rules instead of being differentiated."""

    kind = "custom"

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ) -> None:
        marked = _by_position(fun, unless_empty(nondiff_argnums), unless_empty(nondiff_argnames))
        self.signature = Signature(fun, self.kind, static=marked, option="nondiff", hashable=False)
        # the attributes of a function inside that has rules are these rules, and its signature
        functools.update_wrapper(self, fun, updated=() if isinstance(fun, CustomFunction) else ("__dict__",))
        self.fun = fun
        self.__name__ = self.signature.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        """The rules of a function inside that has other ones, such as ``def_vmap`` of a ``custom_vjp``."""
        inside = self.__dict__.get("fun")
        if name.startswith("def") and isinstance(inside, CustomFunction):
            return getattr(inside, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> UserCall:
        """A call with all arguments, defaults included, by position.

        Raises:
          TypeError: they don't fit the function, or some can only be given by name.
        """
        try:
            args = self.signature.positional(args, kwargs)
        except TypeError as e:
            raise TypeError(
                f"The input arguments to the {self.kind}-decorated function {self.__name__} could not be resolved to "
                f"positional-only arguments. Binding failed with the error:\n{e}"
            ) from e
        call = self.signature.split(args, {})
        call.leaves = [_narrowed(x) for x in call.leaves]
        return call


def _narrowed(x: Any) -> Any:
    """What NumPy made, of the dtype that arrays would have: functions and rules may ask for it, or compute in it."""
    if not isinstance(x, (np.ndarray, np.generic)) or x.dtype not in dtypes.KNOWN:
        return x
    dtype = dtypes.canonicalize(x.dtype)
    return x if x.dtype == dtype else x.astype(dtype)


def _by_position(fun: Callable[..., Any], nums: Any, names: Any) -> tuple[Any, Any]:
    """With the positions of those that are given by name, where others are given by position: calls are made so."""
    if nums is None or names is None:
        return nums, names
    wanted = (names,) if isinstance(names, str) else names
    return (*nums, *(n for n, p in enumerate(inspect.signature(fun).parameters) if p in wanted)), names


def unflatten(flat: Flat, rule: Any, outs: Sequence[Any]) -> Any:
    """The results of a call, whose structure either the function or its rule has told, whichever ran."""
    tree = rule.out_tree if flat.out_tree is None else flat.out_tree
    assert tree is not None
    return tree_unflatten(tree, outs)


@contextlib.contextmanager
def own_lines(rule: Callable[..., Any]) -> Generator[None]:
    """While a user's rule runs: what it computes comes from its lines, below the names around the call that it is for.
    Rules of the library's have no lines to tell, so they come from the call."""
    call, scope = ambient.source, ambient.scope
    code = getattr(rule, "__code__", None)
    if call is not None and code is not None and not is_internal(code.co_filename):
        ambient.source, ambient.scope = None, call.opened
    try:
        yield
    finally:
        ambient.source, ambient.scope = call, scope


def refuse_closed_over(kind: str, tangents: Sequence[Any]) -> None:
    """Values that a function closes over have no place in its rule."""
    if any(type(t) is not Zero for t in tangents):
        raise UnexpectedTracerError(
            f"Detected differentiation of a {kind} function with respect to a closed-over value. That isn't supported "
            f"because the rule only says how to differentiate the {kind} function with respect to its arguments. Pass "
            "the closed-over value as an argument, and extend the rule by it."
        )


def check_results(told: str, name: str, outs: Sequence[Any], wanted: Sequence[ShapedArray] | None) -> None:
    """A rule must give the results of the function that it belongs to; known where the function was recorded.
    ``told`` says what it must produce, and that it did something else instead."""
    if wanted is None:
        return
    got = [aval_of(x) for x in outs]
    if len(got) != len(wanted) or not all(map(same_type, got, wanted)):
        raise TypeError(
            f"{told} had shapes/dtypes of:\n    {_listed(got)}\nwhile the {name} had output shapes/dtypes of:\n"
            f"    {_listed(wanted)}"
        )


def _listed(avals: Sequence[ShapedArray]) -> str:
    return ", ".join(a.str_short() for a in avals)


def at_front(axis: AxisData, outs: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Mapped results, each with its mapped dimension first."""
    return [match_axis(axis, d, 0, x) for x, d in zip(outs, dims, strict=True)]


def where_mapped(axis: AxisData, outs: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], list[int | None]]:
    """The results, those that are mapped with that dimension first; and the dimensions."""
    wanted = [None if d is None else 0 for d in dims]
    return [match_axis(axis, d, w, x) for x, d, w in zip(outs, dims, wanted, strict=True)], wanted


def function_of(fun: Callable[..., Any] | None, call_jaxpr: ClosedJaxpr | None) -> Callable[..., list[Any]]:
    """What a call runs: its program where it was recorded, else the user's function."""
    return fun if call_jaxpr is None else lambda *args: run(call_jaxpr, args)  # pyright: ignore[reportReturnType]


def with_types(tree: PyTreeDef, avals: Sequence[ShapedArray] | None) -> str:
    """The structure, for error texts, with the types of its leaves where they are known."""
    if avals is None:
        return str(tree)
    return str(tree_unflatten(tree, [a.str_short() for a in avals])).replace("'", "")


class UserRule:
    """A user's rule for a function."""

    wanted: Sequence[ShapedArray] | None = None
    """The types of the function's results, where it was recorded."""

    def arrays(self, xs: Sequence[Any]) -> Sequence[Any]:
        """What the rule gets for ``xs``: numbers that a program has in place are arrays to it."""
        return xs if self.wanted is None else [as_is(x) if is_literal_value(x) else x for x in xs]


class MappedRule(UserRule):
    """A user's rule on mapped values; results are mapped at dimension 0 or not at all, as ``out_dims`` says after a
    call."""

    def __init__(self, rule: Any, axis: AxisData, dims: Dims, out_dims: list[int | None]) -> None:
        self.rule = rule
        self.owner = rule.owner
        self.axis = axis
        self.dims = dims
        self.out_dims = out_dims


class FewerResults(UserRule):
    """A user's rule for a function of which only the ``used`` results are left."""

    def __init__(self, rule: Any, used: Mask) -> None:
        self.rule = rule
        self.owner = rule.owner
        self.used = used


class OwnRules(Dissolving):
    """Calls of ``fun``, which becomes the program ``call_jaxpr`` where it is recorded, and of the user's rules.

    The parameter ``rule`` holds these; ``mapped`` makes them rules for mapped values, ``fewer`` for some results.
    """

    def __init__(
        self,
        p: Primitive,
        rule: str = "rule",
        mapped: type[MappedRule] = MappedRule,
        fewer: type[FewerResults] = FewerResults,
    ) -> None:
        super().__init__(p, "call_jaxpr")
        self.rule = rule
        self.mapped = mapped
        self.fewer = fewer

    def impl(self, *args: Any, fun: Any, call_jaxpr: ClosedJaxpr | None, **_: Any) -> list[Any]:
        return function_of(fun, call_jaxpr)(*args)

    def record(self, trace: DynamicJaxprTrace, args: Sequence[Any], params: Params) -> list[Any]:
        """The function becomes a program, whose constants are arguments."""
        if params["call_jaxpr"] is not None:
            return trace.record(self.p, args, params)
        closed = trace_to_jaxpr(params["fun"], [aval_of(x) for x in args], name=params["name"])
        params[self.rule].wanted = closed.out_avals
        program, consts = hoisted(closed)
        recorded = {**params, "fun": None, "call_jaxpr": program, "num_consts": len(consts) + params["num_consts"]}
        return trace.record(self.p, [*consts, *args], recorded)

    def batch(self, axis: AxisData, args: Sequence[Any], dims: Dims, **params: Any) -> tuple[list[Any], Dims]:
        """Function and rules are mapped; whichever of them runs says in ``out_dims`` where results are mapped."""
        function = function_of(params["fun"], params["call_jaxpr"])
        out_dims: list[int | None] = []

        def mapped(*xs: Any) -> list[Any]:
            outs, out_dims[:] = where_mapped(axis, *batch_flat(function, axis, xs, dims))
            return outs

        rule = self.mapped(params[self.rule], axis, dims[params["num_consts"] :], out_dims)
        outs = self.p.bind_all(*args, **params | {"fun": mapped, "call_jaxpr": None, self.rule: rule})
        return outs, list(out_dims)

    def dce(self, used: Sequence[bool], eqn: Eqn) -> Eqn | None:
        """All inputs stay, since the rules may read what the function doesn't."""
        if not any(used) and not eqn.effects:
            return None
        mask = tuple(used)
        program, _ = pruned(eqn.params["call_jaxpr"], mask)
        left = {"call_jaxpr": program, self.rule: self.fewer(eqn.params[self.rule], mask)}
        return eqn.replace(outvars=kept(mask, eqn.outvars), params=eqn.params | left)
