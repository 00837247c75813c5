"""Convolutions without a dimension to go along: products of features, in groups or not."""

from __future__ import annotations

import numpy as np
import pytest

from polyax import lax


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "complex64", "bool"])
@pytest.mark.parametrize(("features", "batches"), [(1, 1), (2, 1), (1, 2)])
def test_products_of_features(dtype: str, features: int, batches: int) -> None:
    x = np.arange(4 * 6).reshape(4, 6) % 5
    w = np.arange(2 * (6 // features)).reshape(2, 6 // features) % 4
    found = lax.conv_general_dilated(
        lax.convert_element_type(x, dtype),
        lax.convert_element_type(w, dtype),
        window_strides=(),
        padding=(),
        dimension_numbers=("NC", "OI", "NC"),
        feature_group_count=features,
        batch_group_count=batches,
    )
    parts = np.split(x, features, 1) if features > 1 else np.split(x, batches, 0)
    if dtype == "bool":
        parts, w = [p > 0 for p in parts], w > 0
    wanted = np.concatenate([p @ v.T for p, v in zip(parts, np.split(w, len(parts)), strict=True)], 1)
    assert found.dtype.name == dtype
    np.testing.assert_array_equal(np.asarray(found).astype(np.complex64), wanted)
