"""Types of what users pass: NumPy's arrays with masks are refused, and cost nobody else anything."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from support.process import output


@pytest.mark.parametrize("use", [jnp.sin, jnp.asarray, polyax.jit(lambda x: x + 1)])
def test_masked_arrays_are_refused(use):
    with pytest.raises(ValueError, match=r"masked arrays are not supported .* arr.filled\(\)"):
        use(np.ma.masked_array([1.0, 2.0], mask=[True, False]))


def test_numbers_of_numpy_do_not_load_its_masked_arrays():
    code = """
        import sys, numpy as np, polyax.numpy as jnp
        print(np.float32(0.5) * jnp.ones(2), jnp.add(1, np.float64(2)), "numpy.ma" in sys.modules)
    """
    assert output(code, POLYAX_PLATFORMS="reference") == "[0.5 0.5] 3.0 False"
