"""Precisions and algorithms of products by name."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
from polyax import lax

X = np.eye(2, dtype=np.float32)


def precision_of(given):
    return polyax.make_jaxpr(lambda x: lax.dot(x, x, precision=given))(X).jaxpr.eqns[0].params["precision"]


@pytest.mark.parametrize(
    "given, level",
    [
        ("F32_F32_F32", "highest"),
        ("BF16_BF16_F32", "default"),
        ("TF32_TF32_F32", "high"),
        (lax.DotAlgorithmPreset.BF16_BF16_F32_X3, "high"),
        ("tensorfloat32", "high"),
    ],
)
def test_names_of_algorithms_are_precisions(given, level):
    assert precision_of(given) == (lax.Precision(level),) * 2


def test_algorithms_by_a_setting():
    with polyax.default_matmul_precision("F32_F32_F32"):
        assert precision_of(None) == (lax.Precision.HIGHEST,) * 2


def test_what_is_printed():
    assert str(lax.DotAlgorithmPreset.F16_F16_F32) == "F16_F16_F32"
    assert (str(lax.Precision.HIGH), repr(lax.Precision.HIGH)) == ("HIGH", "Precision.HIGH")


def test_other_names_are_refused():
    with pytest.raises(ValueError, match=r"Unsupported precision 'F33'; .*, F32_F32_F32"):
        precision_of("F33")
    with pytest.raises(ValueError, match="is not a valid Precision"):
        lax.Precision("F33")
