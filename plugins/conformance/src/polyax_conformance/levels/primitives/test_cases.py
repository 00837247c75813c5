"""What primitives and constructs compute with all their parameters, against the reference backend in float64."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax_conformance.specs.case import Case, as_list
from polyax_conformance.specs.primitives.sampled import sampled


@pytest.mark.parametrize("case", sampled(variants=True))
def test_values_of_primitives(case: Case, platform: str) -> None:
    with polyax.enable_x64(True), polyax.default_device(polyax.devices("reference")[0]):
        want = [np.asarray(x) for x in as_list(case.fun(*case.args))]
    args = [jnp.asarray(x) for x in case.args]
    for got in (case.fun(*args), polyax.jit(case.fun)(*args)):
        for g, w in zip(as_list(got), want, strict=True):
            assert g.shape == w.shape and g.dtype.kind == w.dtype.kind
            np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4 * np.max(np.abs(w), initial=1.0))
