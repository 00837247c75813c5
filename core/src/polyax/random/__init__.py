"""Random numbers from keys, as ``jax.random`` has them: the same key gives the same numbers. Re-exports only."""

from polyax.random.choices import categorical as categorical
from polyax.random.choices import choice as choice
from polyax.random.choices import permutation as permutation
from polyax.random.keys import PRNGKey as PRNGKey
from polyax.random.keys import clone as clone
from polyax.random.keys import fold_in as fold_in
from polyax.random.keys import key_data as key_data
from polyax.random.keys import key_impl as key_impl
from polyax.random.keys import split as split
from polyax.random.samplers import bernoulli as bernoulli
from polyax.random.samplers import bits as bits
from polyax.random.samplers import cauchy as cauchy
from polyax.random.samplers import exponential as exponential
from polyax.random.samplers import gumbel as gumbel
from polyax.random.samplers import laplace as laplace
from polyax.random.samplers import logistic as logistic
from polyax.random.samplers import normal as normal
from polyax.random.samplers import rademacher as rademacher
from polyax.random.samplers import randint as randint
from polyax.random.samplers import truncated_normal as truncated_normal
from polyax.random.samplers import uniform as uniform
