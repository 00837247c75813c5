"""Functions of neural networks, as ``jax.nn`` has them. Re-exports only."""

import sys as _sys
from typing import Any as _Any

from polyax import late as _late
from polyax.nn import initializers as initializers
from polyax.nn.activations import celu as celu
from polyax.nn.activations import elu as elu
from polyax.nn.activations import gelu as gelu
from polyax.nn.activations import glu as glu
from polyax.nn.activations import hard_sigmoid as hard_sigmoid
from polyax.nn.activations import hard_silu as hard_silu
from polyax.nn.activations import hard_swish as hard_swish
from polyax.nn.activations import hard_tanh as hard_tanh
from polyax.nn.activations import identity as identity
from polyax.nn.activations import leaky_relu as leaky_relu
from polyax.nn.activations import log1mexp as log1mexp
from polyax.nn.activations import log_sigmoid as log_sigmoid
from polyax.nn.activations import mish as mish
from polyax.nn.activations import relu as relu
from polyax.nn.activations import relu6 as relu6
from polyax.nn.activations import selu as selu
from polyax.nn.activations import sigmoid as sigmoid
from polyax.nn.activations import silu as silu
from polyax.nn.activations import soft_sign as soft_sign
from polyax.nn.activations import softplus as softplus
from polyax.nn.activations import sparse_plus as sparse_plus
from polyax.nn.activations import sparse_sigmoid as sparse_sigmoid
from polyax.nn.activations import squareplus as squareplus
from polyax.nn.activations import swish as swish
from polyax.nn.normalize import log_softmax as log_softmax
from polyax.nn.normalize import logmeanexp as logmeanexp
from polyax.nn.normalize import logsumexp as logsumexp
from polyax.nn.normalize import one_hot as one_hot
from polyax.nn.normalize import softmax as softmax
from polyax.nn.normalize import standardize as standardize
from polyax.numpy.ufuncs import tanh as tanh
from polyax.runtime.contract.tracebacks import guard as _guard
from polyax.runtime.running.repeated import repeating as _repeating

_guard(_sys.modules[__name__], _repeating)

_LATE = (
    _late.names_of("polyax.nn.attention", "dot_product_attention")
    | _late.names_of("polyax.nn.scaled", "scaled_matmul")
    | _late.names_of("polyax.nn.blockwise", "get_scaled_dot_general_config", "scaled_dot_general")
)


def __getattr__(name: str) -> _Any:
    return _late.load(__name__, _LATE, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
