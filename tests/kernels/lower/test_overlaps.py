"""Convolutions as one product and sums of what overlaps, against convolutions by their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax.extend.core import jaxpr_as_fun
from polyax_kernels.lower import overlaps


def _equation(f: Any, *args: Any) -> Any:
    (eqn,) = polyax.make_jaxpr(f)(*args).jaxpr.eqns
    return [v.aval for v in eqn.invars], eqn.params


@pytest.mark.parametrize("groups", [{}, {"feature_group_count": 2}, {"batch_group_count": 2}], ids=str)
@pytest.mark.parametrize("seed", range(12))
def test_equal_the_definition(seed: int, groups: dict[str, int]) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    specs = [tuple(map(int, rng.permutation(rank + 2))) for _ in range(3)]
    sizes = (2, 3 * groups.get("feature_group_count", 1)), (4, 3)
    x, w = (
        rng.standard_normal(np.take((*size, *rng.integers(low, high, rank)), np.argsort(spec)))
        for size, (low, high), spec in zip(sizes, ((5, 8), (1, 4)), specs, strict=False)
    )
    several = lambda *values: tuple(int(rng.choice(values)) for _ in range(rank))
    geometry: dict[str, Any] = {
        "window_strides": several(1, 1, 2, 3),
        "padding": [(int(a), int(b)) for a, b in rng.integers(-1, 4, (rank, 2))],
        "lhs_dilation": several(1, 2, 3),
        "rhs_dilation": several(1, 2),
        "dimension_numbers": lax.ConvDimensionNumbers(*specs),
    }
    f = lambda x, w: lax.conv_general_dilated(x, w, **geometry, **groups)
    with polyax.enable_x64(), polyax.default_device(polyax.devices("reference")[0]):
        avals, params = _equation(f, x, w)
        (got,) = jaxpr_as_fun(overlaps.program(avals, **params))(x, w)
        np.testing.assert_allclose(got, f(x, w), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("channels, features, window, why", [
    (64, 3, 3, None),
    (64, 3, 1, "nothing overlaps"),
    (64, 32, 3, "products aren't few"),
    (0, 3, 3, "products aren't few"),
    (64, 0, 3, "nothing is added up"),
])  # fmt: skip
def test_pay_for_few_features(channels: int, features: int, window: int, why: str | None) -> None:
    x, w = np.zeros((2, channels, 8), np.float32), np.zeros((features, channels, window), np.float32)
    reason = overlaps.why_not(*_equation(lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME"), x, w))
    assert reason is None if why is None else why in str(reason)
