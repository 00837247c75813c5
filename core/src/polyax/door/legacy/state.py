"""``jax._src.state.types``: types of references to arrays that change."""

from polyax.ir.refs import AbstractRef as AbstractRef
from polyax.ir.refs import RefEffect as RefEffect
