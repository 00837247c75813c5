"""Formats: the one order of dimensions that there is, with shardings; and what is said of devices' memories."""

from __future__ import annotations

import pytest

import polyax
import polyax.numpy as jnp
from polyax.experimental.layout import Format, Layout, with_layout_constraint
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


def test_an_order_is_that_of_an_arrays_dimensions() -> None:
    there = jnp.ones(1).sharding
    rank = r"Length of major_to_minor and the rank of the value should match.*\(0, 1, 2\) and shape=\(2, 3\)"
    with pytest.raises(ValueError, match=rank):
        polyax.device_put(jnp.ones((2, 3)), Format(Layout((0, 1, 2)), there))
    for of_any_order in Format(Layout.AUTO), Format(Layout.AUTO, there):
        with pytest.raises(ValueError, match="sharding and layout in a `Format` should be concrete"):
            polyax.device_put(jnp.ones((2, 3)), of_any_order)
    with pytest.raises(ValueError, match="`polyax.jit` does not accept device-local layouts directly.*Got AUTO"):
        polyax.jit(jnp.sin, in_shardings=Layout.AUTO)(1.0)


def test_arrays_are_assembled_as_a_format_says() -> None:
    x = jnp.arange(6).reshape(2, 3)
    made = polyax.make_array_from_callback(x.shape, x.format, lambda index: x[index])
    assert made.format == x.format and made.tolist() == x.tolist()
    with pytest.raises(TypeError, match="`Layout.AUTO` cannot be used in place of a device-local layout"):
        polyax.make_array_from_callback(x.shape, Format(Layout.AUTO, x.sharding), lambda index: x[index])
    with pytest.raises(TypeError, match="sharding should be an instance of `polyax.sharding`. Got None"):
        polyax.make_array_from_callback(x.shape, Format(), lambda index: x[index])


def test_constraints_of_layouts() -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    turned = polyax.jit(lambda x: with_layout_constraint({"a": x.T}, Layout((1, 0))))(x)
    assert turned["a"].tolist() == x.T.tolist()
    assert with_layout_constraint(x, Layout((0, 1))) is x
    with pytest.raises(ValueError, match="rank of the value should match"):
        with_layout_constraint(x, Layout((0,)))
    with pytest.raises(ValueError, match="must be of type `Layout`. Got Format"):
        with_layout_constraint(x, x.format)
    with pytest.raises(NotImplementedError, match="row by row"):
        with_layout_constraint(x, Layout((1, 0)))


def test_names_of_devices() -> None:
    device = polyax.devices("reference")[0]
    assert device.client is device.backend and device.client.runtime_type == "polyax" and device.host_id == 0
