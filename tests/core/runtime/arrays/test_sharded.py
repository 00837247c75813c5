"""Arrays on several devices, in processes that have eight; and shardings, which need none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyax.ir.aval import ShapedArray
from polyax.meshes.sharding import BlockSharding, Sharding, SingleDeviceSharding
from polyax.runtime.arrays.array import Array, is_concrete
from polyax.runtime.arrays.devices import devices
from polyax.trace.tracer import Trace, Tracer
from support import process

CASES = [Path(__file__).with_name(f"{n}_cases.py") for n in ("sharded", "mesh", "committed")]
HALVES = (slice(0, 2), slice(None)), (slice(2, 4), slice(None))


@pytest.mark.parametrize("platform_name", ["cpu", "reference"])
def test_on_eight_virtual_devices(platform_name: str) -> None:
    process.cases(*CASES, POLYAX_DEVICE=platform_name, POLYAX_NUM_CPU_DEVICES="8")


@pytest.mark.parametrize("platform_name", ["opencl", "hello_c"])
def test_on_two_devices(platform_name: str) -> None:
    process.cases(*CASES, POLYAX_DEVICE=platform_name, POLYAX_NUM_CPU_DEVICES="2", ARGUMENTS="-m sample")


class OfThisProcess:
    """A stand-in for a device: a sharding only passes it on."""

    is_addressable = True


def two() -> tuple[object, object]:
    return devices("reference")[0], OfThisProcess()


def test_one_device() -> None:
    device = devices("reference")[0]
    one = SingleDeviceSharding(device)
    assert isinstance(one, Sharding) and one.device_set == {device}
    assert one.num_devices == 1 and one.is_fully_replicated and one.is_fully_addressable
    assert one.devices_indices_map((2, 3)) == {device: (slice(None), slice(None))}
    assert one.shard_shape((2, 3)) == (2, 3) and one.shard_shape(()) == ()
    assert one == SingleDeviceSharding(device) and len({one, SingleDeviceSharding(device)}) == 1


def test_blocks() -> None:
    places = two()
    halves = BlockSharding(places, HALVES)  # type: ignore[arg-type]
    assert halves.device_set == set(places) and halves.num_devices == 2
    assert not halves.is_fully_replicated and halves.is_fully_addressable
    assert halves.addressable_devices_indices_map((4, 3)) == dict(zip(places, HALVES, strict=True))
    assert halves.shard_shape((4, 3)) == (2, 3)
    same = BlockSharding(places, HALVES)  # type: ignore[arg-type]
    whole = BlockSharding(places, (HALVES[0],) * 2)  # type: ignore[arg-type]
    assert halves == same and hash(halves) == hash(same) and halves != whole and whole.is_fully_replicated


@pytest.mark.parametrize("shape", [(5, 3), (8, 3), (3, 3), (4,), ()])
def test_arrays_that_blocks_do_not_make_up(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"doesn't divide arrays of shape \(.*\) into parts of one shape"):
        BlockSharding(two(), HALVES).shard_shape(shape)  # type: ignore[arg-type]


def test_concrete_arrays_are_no_tracers() -> None:
    tracer = Tracer(Trace(), ShapedArray((), np.dtype("float32")))
    assert isinstance(tracer, Array) and not is_concrete(tracer) and not is_concrete(np.zeros(3))
