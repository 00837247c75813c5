from __future__ import annotations

import pytest

import polyax
import polyax.numpy as jnp
from polyax.extend import backend


def test_backends():
    device = backend.get_default_device()
    assert backend.get_backend() is device.client and device.platform == device.client.platform
    assert backend.get_backend("reference").platform == "reference"
    assert backend.backends()[device.platform] is device.client


@pytest.mark.parametrize("clear", [backend.clear_backends, backend.clear_in_memory_compilation_cache])
def test_programs_forgotten(clear):
    traced = []
    f = polyax.jit(lambda x: traced.append(1) or x + 1)
    assert f(1) == 2 and f(1) == 2 and len(traced) == 1
    clear()
    assert f(1) == 2 and len(traced) == 2


def test_bad_input():
    with pytest.raises(RuntimeError, match="nowhere"):
        backend.get_backend("nowhere")


def test_clearing_backends_keeps_arrays() -> None:
    x = jnp.arange(3)
    backend.clear_backends(_crash=True)
    assert (x + 1).tolist() == [1, 2, 3]
