"""Primitives that users define, with rules written as JAX's: results are values, not lists, unless there are several.

Adapts such rules to the slots of ``polyax.ir.primitive``. Must not know any transformation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from polyax.ir import dtypes
from polyax.ir import primitive as ir
from polyax.ir.aval import ShapedArray, is_array_like
from polyax.ir.effects import NO_EFFECTS
from polyax.reference.table import RULES

F = TypeVar("F", bound=Callable[..., Any])


def listed(primitive: ir.Primitive, out: Any, rule: str) -> list[Any]:
    """What a rule written as JAX's returned, as a list.

    Raises:
      TypeError: it is a list and shouldn't be, or should be and isn't; ValueError of abstract evaluation, as in JAX.
    """
    several = primitive.multiple_results
    if several != isinstance(out, (list, tuple)):
        if rule == "abstract evaluation":
            raise ValueError(
                f"{primitive}.abstract_eval() method should return a tuple or a list iff {primitive}.multiple_results, "
                f"but returned {out!r}"
            )
        raise TypeError(
            f"The {rule} rule of '{primitive}' must return {'a list' if several else 'one value'}, since its "
            f"multiple_results is {several}, but returned {out!r}"
        )
    return list(out) if several else [out]


class Primitive(ir.Primitive):
    """An operation of your own: ``p = Primitive("multiply_add")``.

    ``bind`` applies it. What it means is told by rules, each of which is needed only where it is used:

    * ``def_abstract_eval(f)``: the types of the results from the types of the arguments; needed under ``jit`` and all
      other transformations.
    * ``def_impl(f)``: the result of arrays, computed with NumPy or with polyax; what a call outside of ``jit`` runs.
      In compiled programs it runs on the host if it is all there is, which ``POLYAX_HOST_FALLBACK`` governs.
    * ``def_decomposition(f)``: the same in terms of other operations, such as those of ``polyax.lax``. It runs compiled
      on every device, which is what JAX's lowerings are for.
    * A subclass may have methods ``impl(*arrays, **params)`` and ``abstract_eval(*avals, **params)``, which gives a
    pair
      of types and effects, instead.
    * ``polyax.interpreters.ad.primitive_jvps[p]``, ``ad.primitive_transposes[p]``, ``batching.primitive_batchers[p]``.

    Kernels of a particular device come from plugins, through the hook ``polyax_lowerings``.

    >>> from polyax import lax
    >>> square_p = Primitive("square_plus")
    >>> _ = square_p.def_abstract_eval(lambda x, *, by: x)
    >>> _ = square_p.def_decomposition(lambda x, *, by: lax.add(lax.mul(x, x), by))
    >>> square_p.bind(3.0, by=1.0).item()
    10.0
    """

    multiple_results = False
    """Set it to True on primitives whose results are lists."""
    remedy = (
        " Write it in terms of other operations with def_decomposition, which run compiled on all devices; give it a "
        "NumPy implementation with def_impl, which runs on the host if POLYAX_HOST_FALLBACK is 'warn' or 'allow'; or "
        "bring kernels with a plugin (the hook polyax_lowerings)."
    )

    def __init__(self, name: str, *, higher_order: bool = False, multiple_results: bool = False) -> None:
        super().__init__(name, higher_order=higher_order, multiple_results=multiple_results)
        for method, define in (("abstract_eval", self.def_effectful_abstract_eval), ("impl", self.def_impl)):
            rule = getattr(type(self), method, None)
            if rule is not None:
                define(rule.__get__(self))

    def bind(self, *args: Any, **params: Any) -> Any:
        """Applies the primitive in the current trace.

        Raises:
          TypeError: an argument is no array.
        """
        for n, x in enumerate(args):
            if not is_array_like(x):
                raise TypeError(
                    f"{self.name}.bind: argument {n} must be an array or a scalar, got {x!r}; settings are "
                    "keyword arguments"
                )
        return super().bind(*[_canonical(x) for x in args], **params)

    def listed(self, out: Any, rule: str) -> list[Any]:
        """What a rule returned, as a list."""
        return listed(self, out, rule)

    def def_abstract_eval(self, rule: F) -> F:
        """``rule(*avals, **params)`` gives the ``ShapedArray`` of the result, or their list. Usable as decorator."""
        self._set_types(lambda *avals, **params: self._types(rule(*avals, **params)))
        return rule

    def def_effectful_abstract_eval(self, rule: F) -> F:
        """The same with ``rule`` giving a pair: the types, and a set of effects."""

        def types(*avals: Any, **params: Any) -> Any:
            avals_out, effects = rule(*avals, **params)
            return self._types(avals_out), frozenset(effects) or NO_EFFECTS

        self._set_types(types)
        return rule

    def _set_types(self, rule: Callable[..., Any]) -> None:
        """With types a call outside of programs is compiled as well, so that a device's own rule can run it."""
        self.abstract_eval = rule
        if self.impl is self.decompose:
            self.impl = None

    def _types(self, out: Any) -> list[ShapedArray]:
        avals = self.listed(out, "abstract evaluation")
        for aval in avals:
            if not isinstance(aval, ShapedArray):
                raise TypeError(
                    f"The abstract evaluation rule of '{self.name}' must return a ShapedArray, "
                    f"such as polyax.core.ShapedArray(x.shape, x.dtype), but returned {aval!r}"
                )
        return avals

    def def_impl(self, rule: F) -> F:
        """``rule(*arrays, **params)`` computes the result. Usable as decorator.

        One that compiles the primitive itself, and says so by an attribute ``compiles``, is what is done without it.
        """
        if getattr(getattr(rule, "func", rule), "compiles", False):
            return rule
        self.impl = lambda *args, **params: self.listed(rule(*args, **params), "implementation")
        RULES[self] = lambda *args, **params: [np.asarray(x) for x in self.listed(rule(*args, **params), "NumPy")]
        return rule

    def def_decomposition(self, rule: F) -> F:
        """``rule(*arrays, **params)`` is the same in terms of other operations. Usable as decorator."""
        self.decompose = lambda *args, **params: self.listed(rule(*args, **params), "decomposition")
        if self.impl is None and self.abstract_eval is None:
            self.impl = self.decompose
        return rule


def _canonical(x: Any) -> Any:
    """NumPy arrays come to rules with the dtypes that arrays have."""
    return x.astype(dtypes.canonicalize(x.dtype), copy=False) if isinstance(x, np.ndarray) else x
