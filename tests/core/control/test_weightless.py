"""Values of ``float0`` in compiled programs: zeros that tell nothing, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.control.weightless import weighted

PICKED = polyax.grad(lambda x, i: x[i], argnums=(0, 1), allow_int=True)
ONES = np.ones(2, np.float32)


def scanned() -> Any:
    return lax.scan(lambda c, i: (c, PICKED(ONES, i)), 0.0, np.arange(2))[1]


def chosen() -> Any:
    pick = lambda i: PICKED(ONES, i)
    return lax.cond(True, pick, pick, 1)


PROGRAMS: dict[str, Any] = {
    "a result": (lambda: polyax.jit(PICKED)(ONES, 1), [0.0, 1.0], ()),
    "a result without a scalar": (
        lambda: (1.0, polyax.jit(polyax.grad(lambda x: jnp.sum(x + 0.0), allow_int=True))(np.ones((2, 4), int))),
        1.0,
        (2, 4),
    ),
    "an argument": (
        lambda: polyax.jit(polyax.vjp(lambda x, i: (x, i), ONES, 2)[1])((ONES, np.zeros((), polyax.float0))),
        [1.0, 1.0],
        (),
    ),
    "mapped": (lambda: polyax.jit(polyax.vmap(PICKED, (None, 0)))(ONES, np.arange(2)), np.eye(2), (2,)),
    "results of steps": (scanned, np.eye(2), (2,)),
    "results of branches": (chosen, [0.0, 1.0], ()),
}


@pytest.mark.parametrize("device", ["cpu", "opencl", "reference"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_in_programs(program: str, device: str) -> None:
    run, expected, shape = PROGRAMS[program]
    with polyax.default_device(polyax.devices(device)[0]):
        found, zeros = run()
    np.testing.assert_array_equal(found, expected)
    assert (type(zeros), zeros.dtype, zeros.shape) == (np.ndarray, polyax.float0, shape)


def test_others_stay_as_they_are() -> None:
    program = polyax.make_jaxpr(lambda x: lax.scan(lambda c, i: (c + i, i), x, np.arange(2)))(1)
    assert weighted(program) is program
