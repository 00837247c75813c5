"""Random numbers from keys, as ``jax.random`` has them: the same key gives the same numbers. Re-exports only."""

import sys as _sys
from typing import Any as _Any

from polyax import late as _late
from polyax.random.choices import categorical as categorical
from polyax.random.choices import choice as choice
from polyax.random.choices import permutation as permutation
from polyax.random.distributions import double_sided_maxwell as double_sided_maxwell
from polyax.random.distributions import geometric as geometric
from polyax.random.distributions import lognormal as lognormal
from polyax.random.distributions import maxwell as maxwell
from polyax.random.distributions import multivariate_normal as multivariate_normal
from polyax.random.distributions import orthogonal as orthogonal
from polyax.random.distributions import pareto as pareto
from polyax.random.distributions import rayleigh as rayleigh
from polyax.random.distributions import triangular as triangular
from polyax.random.distributions import wald as wald
from polyax.random.distributions import weibull_min as weibull_min
from polyax.random.gammas import ball as ball
from polyax.random.gammas import beta as beta
from polyax.random.gammas import chisquare as chisquare
from polyax.random.gammas import dirichlet as dirichlet
from polyax.random.gammas import f as f
from polyax.random.gammas import gamma as gamma
from polyax.random.gammas import generalized_normal as generalized_normal
from polyax.random.gammas import loggamma as loggamma
from polyax.random.gammas import random_gamma_p as random_gamma_p
from polyax.random.gammas import t as t
from polyax.random.gumbels import gumbel as gumbel
from polyax.random.keys import PRNGKey as PRNGKey
from polyax.random.keys import clone as clone
from polyax.random.keys import fold_in as fold_in
from polyax.random.keys import key as key
from polyax.random.keys import key_data as key_data
from polyax.random.keys import key_dtype as key_dtype
from polyax.random.keys import key_impl as key_impl
from polyax.random.keys import split as split
from polyax.random.keys import wrap_key_data as wrap_key_data
from polyax.random.poissons import poisson as poisson
from polyax.random.samplers import bernoulli as bernoulli
from polyax.random.samplers import bits as bits
from polyax.random.samplers import cauchy as cauchy
from polyax.random.samplers import exponential as exponential
from polyax.random.samplers import laplace as laplace
from polyax.random.samplers import logistic as logistic
from polyax.random.samplers import normal as normal
from polyax.random.samplers import rademacher as rademacher
from polyax.random.samplers import randint as randint
from polyax.random.samplers import truncated_normal as truncated_normal
from polyax.random.samplers import uniform as uniform
from polyax.runtime.contract.tracebacks import guard as _guard
from polyax.runtime.running.repeated import repeating as _repeating

_guard(_sys.modules[__name__], _repeating)

_LATE = _late.names_of("polyax.random.binomials", "binomial", "multinomial")


def __getattr__(name: str) -> _Any:
    return _late.load(__name__, _LATE, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
