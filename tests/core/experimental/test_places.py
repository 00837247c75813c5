"""Where compiled code is kept, and on which devices it runs: what JAX keeps among its experiments."""

from __future__ import annotations

import os

import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.experimental import topologies
from polyax.experimental.compilation_cache import compilation_cache
from polyax.runtime.contract import cache


@pytest.fixture
def kept():
    before = jax.config.cache_dir
    yield
    jax.config.update("cache_dir", before)


def test_code_is_kept_where_it_was_asked_for(kept, tmp_path):
    compilation_cache.set_cache_dir(tmp_path / "mine")
    assert cache.cache_root() == tmp_path / "mine"
    assert jax.config.jax_compilation_cache_dir == os.fspath(tmp_path / "mine")


def test_a_directory_is_looked_at_anew(kept, tmp_path):
    place = tmp_path / "open"
    place.mkdir()
    place.chmod(0o777)
    compilation_cache.set_cache_dir(place)
    with pytest.warns(UserWarning, match="others can write to it"):
        assert cache._checked_directory(place, "kind") is None
    place.chmod(0o700)
    assert cache._checked_directory(place, "kind") is None
    compilation_cache.reset_cache()
    assert cache._checked_directory(place, "kind") == place / "kind"


def test_a_mesh_of_all_devices():
    topology = topologies.get_attached_topology("cpu")
    assert topology.devices == jax.devices("cpu")
    mesh = topologies.make_mesh(topology, (len(topology.devices), 1), ("x", "y"))
    held = jax.device_put(jnp.arange(8.0), jax.NamedSharding(mesh, jax.P("y")))
    assert held.sharding.mesh is mesh


def test_devices_that_are_not_there():
    with pytest.raises(NotImplementedError, match=r"'v4:2x2', 'tpu'.*get_attached_topology.*polyax.export"):
        topologies.get_topology_desc("v4:2x2", "tpu")
