"""Makers of the functions of distributions: shifted and scaled ones of numbers, and shifted ones of counts.

A distribution's file gives formulas in standard units: ``fun(z, *shapes)`` with ``z = (x - loc) / scale``. Outside of
the support formulas get a harmless number, so that derivatives are finite. Each function is one compiled program.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from polyax import numpy as jnp
from polyax.lax import lenient as lax
from polyax.numpy.fused import fused
from polyax.numpy.promotion import promote_args_inexact, strong
from polyax.ops.basis import named

Formula = Callable[..., Any]

WHAT = {
    "logpdf": "The logarithm of the density",
    "pdf": "The density",
    "cdf": "The distribution function, the probability of at most ``x``,",
    "logcdf": "The logarithm of the distribution function",
    "sf": "The survival function, the probability of more than ``x``,",
    "logsf": "The logarithm of the survival function",
    "ppf": "The quantile function, the inverse of ``cdf``,",
    "isf": "The inverse of ``sf``",
    "logpmf": "The logarithm of the probability of ``k``",
    "pmf": "The probability of ``k``",
}

LIMITS = {"cdf": (0.0, 1.0), "logcdf": (-jnp.inf, 0.0), "sf": (1.0, 0.0), "logsf": (0.0, -jnp.inf)}
"""What functions of probability are below the support and above it."""

STAYS_WEAK = {"binom", "gennorm", "poisson", "vonmises", "wrapcauchy", "gamma.sf", "gamma.logsf", "pareto.logcdf"}
"""Whose values of arrays are of a weak type where the arguments' common one is; all others' aren't, as in JAX."""


def made(family: str, kind: str, fun: Formula, required: Sequence[str], defaults: dict[str, Any]) -> Any:
    """A public function of broadcasting arguments, which are promoted to one floating dtype."""
    names = (*required, *defaults)
    program = fused(named(lambda *xs: fun(*xs), f"{family}.{kind}", ""))
    parameters = [
        inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=defaults.get(n, inspect.Parameter.empty))
        for n in names
    ]
    signature = inspect.Signature(parameters)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        x, *rest = map(jnp.asarray, promote_args_inexact(f"{family}.{kind}", *given.args))
        y = program(x, *rest)
        return strong(y) if x.ndim and not STAYS_WEAK & {family, f"{family}.{kind}"} else y

    where = "with location ``loc``" + (" and ``scale``" if "scale" in defaults else "") if defaults else ""
    text = (
        f"{WHAT[kind]} of the distribution ``{family}`` {where}".rstrip() + f".\n\nArgs:\n  {', '.join(names)}: floats."
    )
    public = named(call, kind, text)
    public.__signature__ = signature
    return public


class LocationScale:
    """The functions of a distribution of numbers.

    Args:
      family: its name.
      shapes: the names of its parameters apart from location and scale.
      low, high: the ends of its support in standard units.
      scaled: whether it has a location and a scale.
      proper: tells of the shapes whether there is such a distribution; where there isn't, all is NaN.
      positive: whether all but quantiles is NaN for scales that aren't positive.
    """

    def __init__(
        self,
        family: str,
        shapes: Sequence[str] = (),
        low: float = -jnp.inf,
        high: float = jnp.inf,
        scaled: bool = True,
        proper: Formula | None = None,
        positive: bool = False,
    ) -> None:
        self.family, self.shapes, self.low, self.high = family, tuple(shapes), low, high
        self.defaults: dict[str, Any] = {"loc": 0, "scale": 1} if scaled else {}
        self.proper, self.positive = proper, positive

    def _standard(self, args: Sequence[Any]) -> tuple[Any, Sequence[Any], Any]:
        if not self.defaults:
            return args[0], args[1:], jnp.ones_like(args[0])
        x, *shapes, loc, scale = args
        return (x - loc) / scale, shapes, scale

    def logpdf(self, fun: Formula) -> Any:
        """From the logarithm of the density in standard units."""

        def located(*args: Any) -> Any:
            z, shapes, scale = self._standard(args)
            outside = self._below(z) | (z > self.high)
            value = fun(jnp.where(outside, self._inside(), z), *shapes) - jnp.log(scale)
            return self._if_proper(shapes, scale, jnp.where(outside, -jnp.inf, value))

        return made(self.family, "logpdf", located, ("x", *self.shapes), self.defaults)

    def _below(self, z: Any) -> Any:
        """Complex numbers are neither below nor above a bound."""
        return lax.lt(z, self.low) if self.low > -jnp.inf else z < self.low

    def _if_proper(self, shapes: Sequence[Any], scale: Any, value: Any) -> Any:
        value = value if self.proper is None else jnp.where(self.proper(*shapes), value, jnp.nan)
        return jnp.where(lax.gt(scale, 0), value, jnp.nan) if self.positive else value

    def _inside(self) -> float:
        return 0.0 if self.low == -jnp.inf else self.low + 0.5

    def probability(self, kind: str, fun: Formula, argument: str = "x") -> Any:
        """From a function of probability in standard units; outside of the support it is flat."""

        def located(*args: Any) -> Any:
            z, shapes, scale = self._standard(args)
            if self.low == -jnp.inf:
                return self._if_proper(shapes, scale, fun(z, *shapes))
            below, above = self._below(z), (z == jnp.inf if self.high == jnp.inf else z > self.high)
            value = fun(jnp.where(below | above, self._inside(), z), *shapes)
            value = jnp.where(below, LIMITS[kind][0], jnp.where(above, LIMITS[kind][1], value))
            return self._if_proper(shapes, scale, value)

        return made(self.family, kind, located, (argument, *self.shapes), self.defaults)

    def quantile(self, kind: str, fun: Formula, argument: str = "q", ends: bool = True) -> Any:
        """From the inverse of a function of probability in standard units; NaN for 0 and 1 without ``ends``."""

        def located(q: Any, *rest: Any) -> Any:
            *shapes, loc, scale = rest
            proper = (q >= 0) & (q <= 1) if ends else lax.gt(q, 0) & lax.lt(q, 1)
            value = loc + scale * fun(jnp.where(proper, q, 0.5), *shapes)
            return jnp.where(proper, value, jnp.nan)

        return made(self.family, kind, located, (argument, *self.shapes), self.defaults)

    def pdf(self, logpdf: Any) -> Any:
        """From the logarithm of the density."""
        return made(self.family, "pdf", lambda *xs: lax.exp(logpdf(*xs)), ("x", *self.shapes), self.defaults)

    def log(self, kind: str, plain: Any) -> Any:
        """The logarithm of a function of probability; flat where that is 0."""

        def logarithm(*args: Any) -> Any:
            value = plain(*args)
            none = value == 0
            return jnp.where(none, -jnp.inf, jnp.log(jnp.where(none, 1.0, value)))

        return made(self.family, kind, logarithm, ("x", *self.shapes), self.defaults)


class Counting:
    """The functions of a distribution of counts, with the names of its shapes."""

    def __init__(self, family: str, shapes: Sequence[str]) -> None:
        self.family, self.shapes = family, tuple(shapes)

    def logpmf(self, possible: Formula, fun: Formula) -> Any:
        """From the logarithm of the probability of ``k``, where ``possible(k, *shapes)``; NaN of what is no number."""

        def located(k: Any, *rest: Any) -> Any:
            *shapes, loc = rest
            k = k - loc
            inside = possible(k, *shapes)
            elsewhere = jnp.where(jnp.isnan(k), jnp.nan, -jnp.inf)
            return jnp.where(inside, fun(jnp.where(inside, k, 1.0), *shapes), elsewhere)

        return made(self.family, "logpmf", located, ("k", *self.shapes), {"loc": 0})

    def pmf(self, logpmf: Any) -> Any:
        """From its logarithm."""
        return made(self.family, "pmf", lambda *xs: lax.exp(logpmf(*xs)), ("k", *self.shapes), {"loc": 0})


def log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) for x >= 0."""
    near = x < 0.6931471805599453
    small = jnp.log(-jnp.expm1(-jnp.where(near, x, 0.5)))
    return jnp.where(near, small, jnp.log1p(-jnp.exp(-jnp.where(near, 1.0, x))))
