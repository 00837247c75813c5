"""``composite``: a function under a name of its own, for tools that look at programs; here it is what it is made of."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from polyax.control.calls.family import CallLike
from polyax.control.inner.programs import run
from polyax.ir.errors import UnexpectedTracerError
from polyax.ir.primitive import Primitive
from polyax.trace.calls import Signature
from polyax.trace.flat import check_callable
from polyax.trace.tracer import Tracer
from polyax.trace.traces import Traces
from polyax.trace.tree import tree_leaves, tree_unflatten

composite_p = Primitive("composite", higher_order=True)
"""``composite[attributes jaxpr name version] *args``: the results of the program."""


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """``decomposition``, which is one equation in programs, of this name.

    Args:
      decomposition: a function of pytrees of arrays; arguments by name are attributes, which are known while tracing.
      name: such as ``"my_library.operation"``.
      version: which version of the operation it is.

    Raises:
      UnexpectedTracerError: an attribute is traced, or ``decomposition`` closes over something that is.
      ValueError: it is differentiated; ``custom_jvp`` around it says how.

    >>> import polyax.numpy as jnp
    >>> scaled_sin = composite(lambda x, *, by: jnp.sin(x) * by, "example.scaled_sin")
    >>> scaled_sin(0.0, by=2.0).item()
    0.0
    """
    check_callable(decomposition)

    @functools.wraps(decomposition)
    def applied(*args: Any, **attributes: Any) -> Any:
        if any(isinstance(x, Tracer) for x in tree_leaves(attributes)):
            note = "\n\nNote: If you are passing jax arrays as attributes, use numpy arrays instead."
            raise UnexpectedTracerError(_traced("an attribute", name) + note)
        fun = functools.partial(decomposition, **attributes)
        call = Signature(fun, "composite").split(args, {})
        made = Traces().of(call)
        if any(isinstance(c, Tracer) for c in made.closed.consts):
            raise UnexpectedTracerError(_traced("a constant", name))
        params = {"attributes": Attributes(attributes), "jaxpr": made.closed, "name": name, "version": version}
        return tree_unflatten(made.out_tree, composite_p.bind(*call.leaves, **params))

    return applied


def _traced(what: str, name: str) -> str:
    return (
        f"Found a JAX Tracer as {what} in the decomposition for the composite op '{name}'. This means that the "
        "decomposition function closes over a value that is involved in a JAX transformation. Any values that aren't "
        "explicitly known at compile time must be explicitly passed as arguments to the composite."
    )


class Attributes(dict[str, Any]):
    """Attributes of one call."""

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


class _Composite(CallLike):
    def decompose(self, *args: Any, **params: Any) -> list[Any]:
        return run(params["jaxpr"], args)

    def jvp(self, *_: Any, **__: Any) -> Any:
        raise ValueError(
            "JVP rule for composite not implemented. You can use `polyax.custom_jvp` to add support. See "
            "https://docs.jax.dev/en/latest/_autosummary/jax.custom_jvp.html. It goes around the composite."
        )


_Composite(composite_p).install("abstract_eval", "impl", "decompose", "jvp", "batch", "sub_jaxprs")
for _rule in ("transpose", "partial_eval"):
    composite_p.never(_rule, "composites aren't differentiated")
composite_p.never("dce", "it is one operation with all its results")
