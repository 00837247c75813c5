"""``import polyax.as_jax``, before anything imports jax: ``import jax`` then means polyax, in libraries too.

The same for a script, ``python -m polyax.as_jax script.py``, and for tests, ``pytest -p polyax.as_jax``. What JAX calls
private or legacy is in ``polyax.door``, and can be reached only this way.
"""

from polyax.door.installing import install as install
from polyax.door.missing import missing as missing

install()
