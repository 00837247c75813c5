from __future__ import annotations

import pytest

import polyax
import polyax.numpy as jnp
from polyax.experimental.scheduling_groups import scheduling_group, xla_metadata_call


@scheduling_group(name="stage")
def doubled(x):
    """Twice."""
    return 2 * x


def test_is_a_program_of_its_own():
    assert "name=doubled" in str(polyax.make_jaxpr(lambda x: doubled(x) + 1)(1.0))
    assert polyax.grad(doubled)(3.0).item() == 2 and polyax.vmap(doubled)(jnp.arange(2)).tolist() == [0, 2]
    assert doubled.__doc__ == "Twice."


def test_bad_input():
    with pytest.raises(NotImplementedError, match="the note stage=1 is of <class 'int'>"):
        xla_metadata_call(lambda x: x, stage=1)
