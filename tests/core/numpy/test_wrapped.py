"""Objects with ``__jax_array__`` that hand on the attributes of their arrays, as variables of libraries do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax


class Variable:
    """All attributes of its array, the type among them, are its own."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __jax_array__(self) -> Any:
        return self.value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(object.__getattribute__(self, "value"), name)


jax.tree_util.register_pytree_node(Variable, lambda v: ((v.value,), None), lambda _, parts: Variable(*parts))

USES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "sum": (lambda v, x: x + v, np.add),
    "product": (lambda v, x: x @ v, np.matmul),
    "add": (lambda v, x: jnp.add(v, x), np.add),
    "array": (lambda v, _: jnp.array([v, v]), lambda v, _: np.array([v, v])),
    "concatenate": (lambda v, x: jnp.concatenate([x, v]), lambda v, x: np.concatenate([x, v])),
    "einsum": (lambda v, x: jnp.einsum("i,i->i", v, x), np.multiply),
    "gelu": (lambda v, _: jax.nn.gelu(v), lambda v, _: np.asarray(jax.nn.gelu(v))),
    "set": (lambda v, x: x.at[:].set(v), lambda v, _: v),
    "take": (lambda v, x: jnp.take(x, Variable(jnp.argmin(v))), lambda v, x: x[np.argmin(v)]),
    "where": (lambda v, x: jnp.where(x > 1, v, x), lambda v, x: np.where(x > 1, v, x)),
    "convert": (lambda v, _: lax.convert_element_type(v, jnp.int32), lambda v, _: v.astype(np.int32)),
    "cond": (
        lambda v, x: lax.cond(Variable(jnp.min(v) > -3), jnp.sin, jnp.cos, x),
        lambda v, x: np.sin(x) if np.min(v) > -3 else np.cos(x),
    ),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_variables_are_the_arrays_that_they_wrap(use: str) -> None:
    f, expected = USES[use]
    vs, x = np.float32([[-1, 2, 3], [4, -6, 5]]), np.float32([0, 1, 2])

    def call(v: Any, x: Any) -> Any:
        return f(Variable(v), x)

    for v in vs:
        for run in (call, jax.jit(call)):
            np.testing.assert_allclose(run(jnp.asarray(v), jnp.asarray(x)), expected(v, x), rtol=1e-6)
    mapped = jax.vmap(call, in_axes=(0, None))(jnp.asarray(vs), jnp.asarray(x))
    np.testing.assert_allclose(mapped, np.stack([expected(v, x) for v in vs]), rtol=1e-6)


def test_raw_operations_refuse_variables() -> None:
    with pytest.raises(ValueError, match="Triggering __jax_array__"):
        lax.exp(Variable(jnp.ones(3)))


def test_variables_of_references_are_no_references() -> None:
    ref = jax.new_ref(jnp.arange(3.0))

    class Stored(Variable):
        def __jax_array__(self) -> Any:
            return self.value[...]

    variable = Stored(ref)
    assert isinstance(ref, jax.Ref)
    assert not isinstance(variable, (jax.Ref, jax.Array))
    np.testing.assert_array_equal(jnp.ones(3) + variable, [1, 2, 3])
    np.testing.assert_array_equal(jnp.reshape(variable, (3, 1)), [[0], [1], [2]])
