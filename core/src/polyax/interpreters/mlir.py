"""``polyax.interpreters.mlir``: lowering rules, as functions of arrays.

JAX lowers primitives to MLIR, and calls a rule with values of it. Here a rule is called with arrays: one that hands on
its operands, or calls what ``lower_fun`` makes of a function, says what the primitive is made of, as
``def_decomposition`` does. Rules that write operations of MLIR can't run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polyax import late
from polyax.extend.core import Primitive
from polyax.ir.aval import ShapedArray, aval_of, is_array_like
from polyax.runtime.plugins.registry import registry
from polyax.trace.tree import tree_leaves

__all__ = ["LoweredFunction", "LoweringRuleContext", "lower_fun", "register_lowering"]


@dataclass(frozen=True)
class LoweringRuleContext:
    """What a rule is told of what it is called for: the primitive, and the types of operands and results."""

    primitive: Primitive
    avals_in: list[ShapedArray]
    avals_out: list[ShapedArray]

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(_cannot_run(self.primitive, f"it asks for the {name} of its context"))


class LoweredFunction:
    """A rule that ``lower_fun`` made; equal to itself alone."""

    def __init__(self, fun: Callable[..., Any], multiple_results: bool) -> None:
        self.fun = fun
        self.multiple_results = multiple_results

    def __call__(self, ctx: LoweringRuleContext, *args: Any, **params: Any) -> list[Any]:
        out = self.fun(*args, **params)
        return list(out) if self.multiple_results else [out]


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> LoweredFunction:
    """A rule for primitives that do what ``fun`` does with arrays.

    Args:
      multiple_results: whether ``fun`` gives a list.
    """
    return LoweredFunction(fun, multiple_results)


def register_lowering(
    prim: Any, rule: Any, platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> Any:
    """Makes ``rule`` what ``prim`` is compiled as; it is returned, so that this can be a decorator.

    Rules for some platform alone are left to it: kernels for it come from plugins.

    Args:
      rule: from a ``LoweringRuleContext``, operands and parameters to a sequence of results. One that writes MLIR is
        noted: compiling the primitive is then an error that says so.
      inline, cacheable: kept for compatibility.

    Raises:
      TypeError: ``prim`` isn't a primitive that was made with ``polyax.extend.core.Primitive``.
      NotImplementedError: neither JAX nor polyax has such a platform.

    >>> double_p = Primitive("doubled")
    >>> _ = double_p.def_abstract_eval(lambda x: x)
    >>> _ = register_lowering(double_p, lower_fun(lambda x: x + x, multiple_results=False))
    >>> double_p.bind(3.0).item()
    6.0
    """
    if platform is not None and platform not in (known := _known_platforms()):
        raise NotImplementedError(
            f"Registering an MLIR lowering rule for primitive {prim} for an unknown platform {platform}. Known "
            f"platforms are: {', '.join(known)}."
        )
    if not isinstance(prim, Primitive):
        raise TypeError(f"register_lowering needs a primitive of polyax.extend.core, got {prim!r}")
    if platform is None:
        prim.def_decomposition(_decomposition(prim, rule))
    return rule


_OF_JAX = ("cpu", "cuda", "gpu", "oneapi", "rocm", "tpu")


def _known_platforms() -> list[str]:
    return sorted({*_OF_JAX, *registry.known_names()})


def _decomposition(prim: Primitive, rule: Callable[..., Any]) -> Callable[..., Any]:
    def decomposed(*args: Any, **params: Any) -> Any:
        avals = [aval_of(x) for x in args]
        outs = tree_leaves(rule(LoweringRuleContext(prim, avals, _results(prim, avals, params)), *args, **params))
        for x in outs:
            if not is_array_like(x):
                raise NotImplementedError(_cannot_run(prim, f"it gives {x!r}"))
        return outs if prim.multiple_results else outs[0]

    return decomposed


def _results(prim: Primitive, avals: list[ShapedArray], params: dict[str, Any]) -> list[ShapedArray]:
    """The types of results, if they are told without computing them."""
    told = () if prim.abstract_eval is None else prim.abstract_eval(*avals, **params)
    return list(told[0] if isinstance(told, tuple) and told else told)


def _cannot_run(prim: Primitive, why: str) -> str:
    return (
        f"the lowering rule of '{prim}' writes MLIR ({why}), which isn't what programs are compiled to here: "
        "say what it computes with mlir.lower_fun, or with def_decomposition"
    )


def __getattr__(name: str) -> Any:
    return late.load(__name__, {}, name)
