from __future__ import annotations

import polyax
import polyax.numpy as jnp
from polyax.experimental.xla_metadata import set_xla_metadata


def test_values_and_context():
    x = {"a": jnp.arange(3.0), "b": 2}
    with set_xla_metadata(a="b"):
        found = polyax.jit(lambda x: set_xla_metadata(x, c=1))(x)
    assert found["a"].tolist() == [0, 1, 2] and found["b"].item() == 2


def test_decorated_functions_keep_what_they_have():
    @set_xla_metadata(a="b")
    @polyax.jit
    def f(x):
        """Doubles."""
        return 2 * x

    assert f(2).item() == 4 and f.lower(2).compile()(2).item() == 4
    assert f.__name__ == "f" and f.__doc__ == "Doubles."
