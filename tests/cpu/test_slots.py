"""Native code finds attributes where Python keeps them."""

import ctypes

import pytest

import polyax
import polyax.numpy as jnp
from polyax_cpu.calls import slots


@pytest.fixture
def array():
    return jnp.arange(4.0, device=polyax.devices("cpu")[0])


@pytest.mark.parametrize("slot", [*slots.ARRAYS, *slots.MEMORIES], ids=lambda slot: slot.name)
def test_an_attribute_is_at_its_place(array, slot):
    owner = array.block_until_ready() if slot in slots.ARRAYS else array.buffer
    assert isinstance(owner, slot.kind)
    place = ctypes.c_void_p.from_address(id(owner) + slot.offset())
    assert place.value == id(getattr(owner, slot.name))


class Slotted:
    __slots__ = ("__weakref__", "x")

    @property
    def y(self):
        return 1


@pytest.mark.parametrize("name", ["y", "__weakref__", "__class__"])
def test_what_is_no_slot_has_no_place(name):
    assert slots.Slot(Slotted, "x").offset() is not None
    assert slots.Slot(Slotted, name).offset() is None


def test_calls_go_through_python_where_attributes_are_elsewhere(monkeypatch):
    from polyax_cpu.calls import table

    monkeypatch.setattr(slots.Slot, "offset", lambda self: None)
    table.supported.cache_clear()
    try:
        assert not table.supported()
        f = polyax.jit(lambda x: {"a": x + 1})
        assert [float(f(float(n))["a"]) for n in range(70)] == [n + 1.0 for n in range(70)]
    finally:
        table.supported.cache_clear()
