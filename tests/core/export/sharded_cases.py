"""Functions exported for several devices, run by ``test_sharded`` on eight virtual ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import export
from polyax.sharding import AbstractMesh, Mesh, NamedSharding
from polyax.sharding import PartitionSpec as P

MESH = Mesh(polyax.local_devices()[:4], ("a",))
X = np.arange(32, dtype=np.float32)


def loaded(f: Any, spec: Any) -> export.Exported:
    made = export.export(polyax.jit(f))(spec)
    found = export.deserialize(made.serialize(vjp_order=1))
    assert found.nr_devices == made.nr_devices == 4
    return found


def test_other_devices_and_other_axes() -> None:
    for mesh in (MESH, AbstractMesh((4,), ("a",))):
        spec = polyax.ShapeDtypeStruct(X.shape, X.dtype, sharding=NamedSharding(mesh, P("a")))
        found = loaded(lambda x: x * 2, spec)
        assert str(found.in_shardings_jax(MESH)) == str((NamedSharding(MESH, P("a")),))
        other = Mesh(np.array(polyax.local_devices()[2:6]).reshape(2, 2), ("b", "c"))
        for place in (NamedSharding(MESH, P("a")), NamedSharding(MESH, P()), NamedSharding(other, P("b"))):
            result = found.call(polyax.device_put(X, place))
            assert result.tolist() == (X * 2).tolist()
            assert {s.device for s in result.addressable_shards} == place.device_set
            assert {s.data.shape for s in result.addressable_shards} == {(8,)}
        with pytest.raises(ValueError, match="was exported for 4 devices and is called in a context with 1 devices"):
            found.call(X)
        with pytest.raises(ValueError, match="does not match the mesh used for export"):
            found.in_shardings_jax(other)


def test_constraints_and_derivatives() -> None:
    place = NamedSharding(MESH, P("a"))
    f = lambda x: polyax.lax.with_sharding_constraint(jnp.sin(x) + 1, place)
    found = loaded(f, polyax.ShapeDtypeStruct(X.shape, X.dtype, sharding=place))
    x = polyax.device_put(X, place)
    np.testing.assert_allclose(found.call(x), np.sin(X) + 1, rtol=1e-5)
    np.testing.assert_allclose(polyax.grad(lambda x: found.call(x).sum())(x), np.cos(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(polyax.jit(lambda x: found.call(x) * 2)(x), 2 * np.sin(X) + 2, rtol=1e-5)
