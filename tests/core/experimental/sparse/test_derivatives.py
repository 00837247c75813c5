"""``sparse.grad`` and its kin: derivatives with respect to stored elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from core.experimental.sparse.layouts import close, full, some

import polyax
from polyax import numpy as jnp
from polyax.experimental import sparse
from polyax.experimental.sparse import BCOO

X, Y = some(3, 4), full(4)
MAT = BCOO.fromdense(X)


def product(m: Any, y: Any) -> Any:
    return m @ y


def test_gradients_have_the_form_of_the_arguments() -> None:
    loss = lambda tree, y: ((tree["m"] @ y) ** 2).sum() * tree["s"]
    value, (tree, y) = sparse.value_and_grad(loss, argnums=(0, 1))({"m": MAT, "s": 2.0}, Y)
    wanted = polyax.value_and_grad(loss, argnums=(0, 1))({"m": jnp.asarray(X), "s": 2.0}, Y)
    close(value, wanted[0])
    assert isinstance(tree["m"], BCOO) and tree["m"].shape == MAT.shape
    np.testing.assert_array_equal(tree["m"].indices, MAT.indices)
    close(tree["m"].todense(), np.where(X != 0, wanted[1][0]["m"], 0), 1e-4)
    close(tree["s"], wanted[1][0]["s"], 1e-4)
    close(y, wanted[1][1], 1e-4)


def test_auxiliary_results() -> None:
    found, aux = sparse.grad(lambda m: (m.sum(), "aux"), has_aux=True)(MAT)
    assert aux == "aux" and found.data.tolist() == [1.0] * MAT.nse
    (value, aux), found = sparse.value_and_grad(lambda m: (m.sum(), 3), has_aux=True)(MAT)
    close(value, X.sum())
    assert aux == 3 and isinstance(found, BCOO)
    with pytest.raises(TypeError, match="argnums"):
        sparse.grad(product, argnums="m")  # type: ignore[arg-type]


@pytest.mark.parametrize("jacobian", [sparse.jacfwd, sparse.jacrev])
def test_jacobians(jacobian: Any) -> None:
    found, of_y = jacobian(product, argnums=(0, 1))(MAT, Y)
    wanted = polyax.jacrev(product)(jnp.asarray(X), Y)
    assert repr(found) == f"BCOO(float32[3, 3, 4], nse={MAT.nse}, n_batch=1)"
    close(found.todense(), np.where(X != 0, wanted, 0))
    close(of_y, X)
    out, aux = jacobian(lambda m: ({"a": m @ Y}, 1), has_aux=True)(MAT)
    close(out["a"].todense(), found.todense())
    assert aux == 1 and sparse.jacobian is sparse.jacrev
    out, aux = jacobian(lambda m: (m @ Y, m), has_aux=True)(MAT)
    close(aux.todense(), X)
    with pytest.raises(ValueError, match="argnums 1 is out of range for a call with 1 positional argument"):
        jacobian(product, argnums=1)(MAT)


def test_second_derivatives() -> None:
    loss = lambda d: ((BCOO((d, MAT.indices), shape=MAT.shape) @ Y) ** 3).sum()
    dense = lambda d: ((jnp.zeros((3, 4)).at[tuple(np.asarray(MAT.indices).T)].set(d) @ Y) ** 3).sum()
    close(polyax.hessian(loss)(MAT.data), polyax.hessian(dense)(MAT.data), 1e-3)


@pytest.mark.parametrize("layout", [{"n_batch": 1}, {"n_dense": 1}])
def test_zeros_that_are_stored_have_derivatives(layout: dict[str, int]) -> None:
    """Without sparse dimensions every element is stored, so that all that follows from it is linear."""
    there_and_back = lambda x: BCOO.fromdense(x, nse=1, **layout).todense()
    for jacobian in (polyax.jacfwd, polyax.jacrev):
        np.testing.assert_array_equal(jacobian(there_and_back)(jnp.array([1.0, 0.0, 3.0])), np.eye(3))
