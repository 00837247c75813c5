"""``polyax.interpreters.mlir``: lowering rules that are functions of arrays, as decompositions.

JAX lowers primitives to MLIR. Here a primitive that is made of others says so with ``def_decomposition``; a rule that
``lower_fun`` makes of a function says the same. Rules that write MLIR can't run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyax.extend.core import Primitive

__all__ = ["LoweredFunction", "lower_fun", "register_lowering"]


class LoweredFunction:
    """A rule that ``lower_fun`` made; equal to itself alone."""

    def __init__(self, fun: Callable[..., Any], multiple_results: bool) -> None:
        self.fun = fun
        self.multiple_results = multiple_results

    def __call__(self, *args: Any, **params: Any) -> Any:
        raise NotImplementedError("a lowering rule isn't called here: register it with register_lowering")


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> LoweredFunction:
    """A rule for primitives that do what ``fun`` does with arrays.

    Args:
      multiple_results: whether ``fun`` gives a list.
    """
    return LoweredFunction(fun, multiple_results)


def register_lowering(
    prim: Any, rule: Any, platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> Any:
    """Makes ``rule``, of ``lower_fun``, what ``prim`` is compiled as; it is returned, so that this can be a decorator.

    A rule that writes MLIR is noted: compiling the primitive is then an error that says so. Rules for some platform
    alone are left to it: kernels for it come from plugins.

    Args:
      inline, cacheable: kept for compatibility.

    Raises:
      TypeError: ``prim`` isn't a primitive that was made with ``polyax.extend.core.Primitive``.

    >>> double_p = Primitive("doubled")
    >>> _ = double_p.def_abstract_eval(lambda x: x)
    >>> _ = register_lowering(double_p, lower_fun(lambda x: x + x, multiple_results=False))
    >>> double_p.bind(3.0).item()
    6.0
    """
    if not isinstance(prim, Primitive):
        raise TypeError(f"register_lowering needs a primitive of polyax.extend.core, got {prim!r}")
    if platform is not None:
        return rule
    prim.def_decomposition(_decomposition(prim, rule) if isinstance(rule, LoweredFunction) else _refusal(prim))
    return rule


def _decomposition(prim: Primitive, rule: LoweredFunction) -> Callable[..., Any]:
    def decomposed(*args: Any, **params: Any) -> Any:
        out = rule.fun(*args, **params)
        if rule.multiple_results == prim.multiple_results:
            return out
        return out[0] if rule.multiple_results else [out]

    return decomposed


def _refusal(prim: Primitive) -> Callable[..., Any]:
    def refused(*args: Any, **params: Any) -> Any:
        raise NotImplementedError(
            f"the lowering rule of '{prim}' writes MLIR, which isn't what programs are compiled to here: say what it "
            "computes with mlir.lower_fun, or with def_decomposition"
        )

    return refused
