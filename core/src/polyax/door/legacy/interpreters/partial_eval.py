"""``jax._src.interpreters.partial_eval``: what libraries use of it beside the public part."""

from __future__ import annotations

from polyax.ir.jaxpr import ClosedJaxpr, Jaxpr


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """A program that has no constants, for what takes programs with the values of these."""
    return ClosedJaxpr(jaxpr, ())
