"""``polyax.interpreters``: where rules of primitives are registered, as in JAX. Re-exports only."""

from polyax.interpreters import ad as ad
from polyax.interpreters import batching as batching
from polyax.interpreters import partial_eval as partial_eval
