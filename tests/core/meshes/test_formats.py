"""Formats: the one order of dimensions that there is, with shardings; and what is said of devices' memories."""

from __future__ import annotations

import pytest

import polyax
import polyax.numpy as jnp
from polyax.experimental.layout import Format, Layout
from polyax.sharding import SingleDeviceSharding


def test_arrays_go_where_a_format_says() -> None:
    there = SingleDeviceSharding(polyax.devices("reference")[0])
    x = polyax.device_put(jnp.ones((2, 3)), Format(None, there))
    assert x.sharding == there and x.format == Format(Layout((0, 1), ()), there) != Format()
    assert polyax.device_put(x, x.format) is x and polyax.device_put({"a": x}, {"a": x.format})["a"] is x
    assert hash(x.format) == hash(Format(Layout((0, 1), ()), there))


def test_another_order_is_refused() -> None:
    there = jnp.ones(1).sharding
    with pytest.raises(NotImplementedError, match=r"\(1, 0\).*row by row, so major_to_minor is \(0, 1\)"):
        polyax.device_put(jnp.ones((2, 3)), Format(Layout((1, 0)), there))
    with pytest.raises(NotImplementedError, match="tiling.*without tiles"):
        polyax.device_put(jnp.ones((2, 3)), Format(Layout((0, 1), ((8, 128),)), there))
    with pytest.raises(TypeError, match="`Layout.AUTO` or an instance of `Layout`"):
        Format((0, 1))
    with pytest.raises(TypeError, match="Expected a `Sharding`"):
        Format(None, polyax.devices()[0])


def test_names_of_devices() -> None:
    device = polyax.devices("reference")[0]
    assert device.client is device.backend and device.client.runtime_type == "polyax" and device.host_id == 0
