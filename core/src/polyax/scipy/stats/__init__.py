"""Distributions, one a module, and summaries of samples, as ``jax.scipy.stats`` has them. Re-exports only."""

from typing import Any as _Any

from polyax import late as _late

_LATE = (
    _late.submodules(__name__, "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon")
    | _late.submodules(__name__, "gamma", "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic")
    | _late.submodules(__name__, "multinomial", "multivariate_normal", "nbinom", "norm", "pareto", "poisson", "t")
    | _late.submodules(__name__, "truncnorm", "uniform", "vonmises", "wrapcauchy")
    | _late.names_of("polyax.scipy.stats.summaries", "mode", "rankdata", "sem")
    | _late.names_of("polyax.scipy.stats.kde", "gaussian_kde")
)


def __getattr__(name: str) -> _Any:
    return _late.load(__name__, _LATE, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
