"""Guards of copies among devices. Run by ``test_settings.py``."""

from __future__ import annotations

import numpy as np
import pytest

import polyax

pytestmark = pytest.mark.skipif(len(polyax.devices()) < 2, reason="run by test_settings.py, with two devices")


@pytest.mark.parametrize("level", ["disallow", "disallow_explicit"])
def test_copies_among_devices(level):
    first, second = polyax.devices()[:2]
    x, y = (polyax.device_put(np.ones(3, np.float32), d) for d in (first, second))
    free = polyax.numpy.arange(3.0)
    on_second = polyax.jit(lambda x: x + x, device=second)
    for guard in (polyax.transfer_guard, polyax.transfer_guard_device_to_device):
        with guard(level):
            assert on_second(y).tolist() == [2, 2, 2]
            with pytest.raises(polyax.errors.JaxRuntimeError, match=r"Disallowed device-to-device.*Device\(id=1\)"):
                on_second(x)
            with pytest.raises(polyax.errors.JaxRuntimeError, match="Disallowed device-to-device"):
                free + y  # what was put nowhere goes there
            if level == "disallow":
                assert polyax.device_put(x, second).devices() == {second}
            else:
                with pytest.raises(polyax.errors.JaxRuntimeError, match="Disallowed device-to-device"):
                    polyax.device_put(x, second)
    with polyax.transfer_guard_host_to_device(level):
        assert on_second(x).tolist() == [2, 2, 2]


def test_arrays_that_are_spread_are_copied_among_devices():
    """Wherever the copy is made from."""
    mesh = polyax.make_mesh((2,), ("i",))
    x = polyax.numpy.arange(8.0)
    with polyax.transfer_guard_host_to_device("disallow_explicit"):
        assert polyax.device_put(x, polyax.NamedSharding(mesh, polyax.P("i"))).tolist() == x.tolist()
    on_mesh = polyax.jit(lambda x: x + 1, in_shardings=polyax.NamedSharding(mesh, polyax.P("i")))
    told = pytest.raises(polyax.errors.JaxRuntimeError, match=r"device-to-device.*float32\[8\].*P\('i',\)")
    with polyax.transfer_guard_device_to_device("disallow"), told:
        on_mesh(x)
