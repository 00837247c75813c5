"""Which devices there are, what is known of them, and what users read where there are none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.ir.config import config
from polyax.runtime.plugins.registry import Registry
from polyax_opencl import probe, runtime
from polyax_opencl.backend import OpenCLBackend
from polyax_opencl.probe import cl
from support.process import output, run


def test_devices_are_numbered_in_order(two: OpenCLBackend) -> None:
    assert [str(d) for d in two.devices()] == ["opencl:0", "opencl:1"]
    assert repr(two.devices()[1]) == "OpenclDevice(id=1)"
    assert two.devices()[0].device_kind == probe.title(probe.find().devices[0])


GPU, PROCESSOR = (SimpleNamespace(type=kind) for kind in (cl.device_type.GPU, cl.device_type.CPU))


@pytest.mark.parametrize(
    "devices, first", [((PROCESSOR,), "cpu"), ((GPU,), "opencl"), ((PROCESSOR, GPU), "opencl")], ids=str
)
def test_a_gpu_comes_before_the_processor_and_opencl_on_it_behind(
    devices: Any, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "find", lambda: probe.Found(devices))
    everything = Registry()
    everything.load()
    assert next(name for name in everything.names() if name in ("cpu", "opencl")) == first


def test_the_default_is_told_with_its_reason() -> None:
    told = output(
        "from polyax.runtime.telling.info import report; print(report())", POLYAX_PLATFORMS="opencl,reference"
    )
    assert "usable, the default (POLYAX_PLATFORMS names it first)" in told


def test_platforms_are_numbered_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaders report them in an order of their own."""
    device = SimpleNamespace(available=1, compiler_available=1)
    platforms = [platform("Portable", [device]), platform("Broken", None), platform("Acme", [device])]
    monkeypatch.setattr(cl, "get_platforms", lambda: platforms)
    assert probe.find.__wrapped__().devices == (device, device)
    names = [d for p in sorted(platforms, key=lambda p: p.name) for d in probe.usable_devices(p)]
    assert len(names) == 2


def platform(name: str, devices: list[Any] | None) -> SimpleNamespace:
    def get_devices() -> list[Any]:
        if devices is None:
            raise cl.RuntimeError("DEVICE_NOT_FOUND")
        return devices

    return SimpleNamespace(name=name, version="OpenCL 3.0", get_devices=get_devices)


def test_platforms_without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cl, "get_platforms", lambda: [platform("Acme", None)])
    reason = probe.find.__wrapped__().why_none
    assert "(Acme) have no usable device" in reason and "polyax-opencl[pocl]" in reason


def test_no_platform() -> None:
    """The ICD loader is told to look in a place where nothing is."""
    done = run("import polyax; polyax.devices()", POLYAX_PLATFORMS="opencl", OCL_ICD_VENDORS="/nowhere/none.icd")
    assert done.returncode
    assert "no OpenCL platform is installed" in done.stderr and 'pip install "polyax-opencl[pocl]"' in done.stderr


def test_a_device_is_chosen_by_its_number() -> None:
    program = """
        import polyax
        print(polyax.numpy.ones(3).device, len(polyax.devices("opencl")))
    """
    environment = {"POLYAX_PLATFORMS": "opencl", "POLYAX_DEVICE": "opencl:1", "POLYAX_NUM_CPU_DEVICES": "2"}
    assert output(program, **environment).startswith("opencl:1 ")


def test_a_number_too_high() -> None:
    done = run("import polyax; polyax.numpy.ones(3)", POLYAX_PLATFORMS="opencl", POLYAX_DEVICE="opencl:99")
    assert done.returncode and "opencl:99" in done.stderr.splitlines()[-2] + done.stderr.splitlines()[-1]


def a_device(**numbers: Any) -> SimpleNamespace:
    usual = {
        "local_mem_type": cl.device_local_mem_type.LOCAL,
        "max_work_group_size": 1024,
        "max_work_item_sizes": [512, 512, 64],
        "double_fp_config": 63,
        "max_parameter_size": 4096,
        "local_mem_size": 48 * 1024,
        "max_compute_units": 20,
        "native_vector_width_float": 1,
    }
    return SimpleNamespace(**usual | numbers)


def test_limits_of_a_gpu() -> None:
    found = runtime.limits(a_device())
    assert (found.threads, found.group, found.units, found.local_bytes) == (512, 256, 20, 24 * 1024)
    assert np.dtype("float64") in found.dtypes


def test_limits_of_a_processor() -> None:
    """Its local memory is not faster than any other: work-items don't cooperate."""
    found = runtime.limits(a_device(local_mem_type=cl.device_local_mem_type.GLOBAL, max_parameter_size=1024))
    assert found.group == 1 and found.lanes > 1 and found.operands == 56


def test_no_float64(two: OpenCLBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    single = runtime.limits(a_device(double_fp_config=0))
    for each in two.runtimes:
        monkeypatch.setattr(each, "limits", single)
    with config.override(enable_x64=True), pytest.raises(TypeError, match=r"float64\[3\] can't live on opencl:1") as e:
        jax.device_put(np.arange(3.0), two.devices()[1])
    assert "the device has no float64; it has bfloat16, bool, float16, float32" in str(e.value)


def test_memory_stats(opencl: OpenCLBackend) -> None:
    device = opencl.devices()[0]
    before = device.memory_stats()
    x = jnp.zeros((1000, 1000), jnp.float32) + 1
    x.block_until_ready()
    after = device.memory_stats()
    assert after["bytes_in_use"] - before["bytes_in_use"] >= 4_000_000
    assert after["bytes_limit"] >= after["bytes_reserved"] >= after["bytes_in_use"]
