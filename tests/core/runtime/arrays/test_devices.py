"""Devices are named, chosen and refused as settings say; arrays move between them."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import polyax
from polyax.ir.config import config
from polyax.runtime.arrays import devices as d
from polyax.runtime.arrays.array import Array
from polyax.runtime.arrays.assembling import make_array_from_process_local_data
from polyax.runtime.arrays.placing import device_put
from polyax.runtime.plugins import default_device
from support.process import output, run

SHOW = "from polyax.runtime.arrays.devices import *; print(devices(), default_device_now())"
REFERENCE = {"POLYAX_PLATFORMS": "reference"}


def test_virtual_devices() -> None:
    shown = output(
        "from polyax.runtime.arrays.devices import *; print(device_count(), devices()[7])",
        **REFERENCE,
        POLYAX_NUM_CPU_DEVICES="8",
    )
    assert shown == "8 reference:7"


@pytest.mark.parametrize(
    "device, chosen", [("reference:1", "reference:1"), ("1", "reference:1"), ("reference", "reference:0")]
)
def test_default_device_from_the_environment(device: str, chosen: str) -> None:
    assert output(SHOW, **REFERENCE, POLYAX_NUM_CPU_DEVICES="2", POLYAX_DEVICE=device).endswith(chosen)


@pytest.mark.parametrize(
    "device, text",
    [
        (
            "reference:2",
            "Unknown device 'reference:2': there are reference:0, reference:1; POLYAX_NUM_CPU_DEVICES makes more",
        ),
        ("reference:x", "'reference:x' names no device; write it as platform:number"),
        ("nosuch:0", "POLYAX_PLATFORMS=reference leaves 'nosuch' out"),
    ],
)
def test_device_that_can_not_be_had(device: str, text: str) -> None:
    done = run(SHOW, **REFERENCE, POLYAX_NUM_CPU_DEVICES="2", POLYAX_DEVICE=device)
    assert done.returncode == 1 and text in done.stderr


def test_platform_that_can_not_be_had_is_an_error_even_if_it_is_not_the_first() -> None:
    done = run(SHOW, POLYAX_PLATFORMS="reference,metal")
    assert "Unknown backend metal" in done.stderr and "pip install polyax-metal" in done.stderr


def test_unknown_platform() -> None:
    with pytest.raises(RuntimeError, match="Unknown backend nosuch. Available backends are"):
        d.devices("nosuch")


def test_reference_is_always_at_hand() -> None:
    with config.override(platforms="somethingelse"):
        assert d.devices("reference")[0].platform == "reference"
        with pytest.raises(RuntimeError, match="leaves 'hello_c' out"):
            d.devices("hello_c")


def test_default_device_is_of_the_thread() -> None:
    reference = d.devices("reference")[0]
    before, seen = config.get("device"), list[object]()
    with default_device.default_device("reference"):
        thread = threading.Thread(target=lambda: seen.append(config.get("device")))
        thread.start()
        thread.join()
        assert d.default_device_now() is reference and d.default_backend() == "reference"
    assert seen == [before]


@pytest.mark.parametrize("wrong", [3, object()])
def test_default_device_of_a_wrong_type(wrong: object) -> None:
    with pytest.raises(ValueError, match="must be passed either a Device object"), default_device.default_device(wrong):  # type: ignore[arg-type]
        pass


def test_processes() -> None:
    assert (d.process_index(), d.process_count()) == (0, 1)
    assert d.local_devices(backend="reference") == d.devices("reference")
    with pytest.raises(ValueError, match="Unknown process_index 2"):
        d.local_devices(2)


@pytest.fixture
def reference() -> object:
    return d.devices("reference")[0]


def test_device_put_of_a_pytree(reference: object) -> None:
    tree = device_put({"a": 1, "b": [2.5, np.arange(3)], "c": None}, reference)
    assert repr(tree["a"]) == "Array(1, dtype=int32, weak_type=True)"
    assert repr(tree["b"][0]) == "Array(2.5, dtype=float32, weak_type=True)"
    assert repr(tree["b"][1]) == "Array([0, 1, 2], dtype=int32)"
    back = d.device_get(tree)
    assert isinstance(back["b"][1], np.ndarray) and back["c"] is None


def test_device_get_of_what_only_converts() -> None:
    class Converts:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return np.ones(2)

    assert [x.tolist() for x in d.device_get([Converts()])] == [[1.0, 1.0]]


def test_device_put_copies(reference: object) -> None:
    host = np.zeros(3, np.float32)
    x = device_put(host, reference)
    host[:] = 7
    np.testing.assert_array_equal(np.asarray(x), [0, 0, 0])


@pytest.mark.parametrize(
    "host", [np.zeros((3, 4), np.float32).T, np.zeros((4, 6), np.int8)[::2, 1:], np.array(2.5), np.zeros((0, 3))]
)
def test_any_layout_arrives_dense(reference: object, host: np.ndarray) -> None:
    x = device_put(host, reference)
    assert np.asarray(x).flags.c_contiguous and x.shape == host.shape
    np.testing.assert_array_equal(np.asarray(x), host)


def test_device_put_where_it_is(reference: object) -> None:
    x = device_put(1.0, reference)
    assert device_put(x, reference) is x and device_put(x) is x


def test_device_put_to_a_tree_of_devices(reference: object) -> None:
    one, two = device_put([1.0, [2.0, 3.0]], [reference, reference])
    assert one.device is reference and two[1].device is reference


@pytest.mark.parametrize("wrong", ["abc", object()])
def test_device_put_of_no_array(reference: object, wrong: object) -> None:
    with pytest.raises(TypeError, match="is not a valid JAX type"):
        device_put([1, wrong], reference)


def test_device_put_of_an_unsupported_dtype(reference: object) -> None:
    with pytest.raises(TypeError, match="JAX does not support dtype <U1; supported: bfloat16, bool,"):
        device_put(np.array(["a"]), reference)


def test_device_put_to_no_device() -> None:
    with pytest.raises(ValueError, match="Received invalid value: 3 of type"):
        device_put(1.0, 3)


def test_copies_between_devices() -> None:
    program = """
        from polyax.runtime.arrays.devices import *
        from polyax.runtime.arrays.placing import device_put
        a, b = devices()
        x = device_put([1., 2.], a)
        y = device_put(x, b, donate=True)
        print(y, y[0].device, x[0].is_deleted())
        a.backend.in_host_memory = False
        device_put(x, b, donate=True)
        print(x[0].is_deleted())
    """
    shown = output(program, **REFERENCE, POLYAX_NUM_CPU_DEVICES="2")
    assert shown.startswith("[Array(1., dtype=float32, weak_type=True),") and shown.endswith("reference:1 False\nTrue")


def test_block_until_ready_accepts_anything(reference: object) -> None:
    x = device_put(1.0, reference)
    tree = {"a": x, "b": 3, "c": "text"}
    assert d.block_until_ready(tree) is tree and d.block_until_ready(x) is x and d.block_until_ready(None) is None


def test_trees_are_waited_for_on_every_platform(platform: str) -> None:
    x = polyax.device_put(np.ones((1024, 1024), np.float32), polyax.devices(platform)[0])
    y = polyax.jit(lambda x: x @ x @ x)(x)
    d.block_until_ready({"results": (y,)})
    assert y.is_ready()


def test_isinstance(reference: object) -> None:
    assert isinstance(device_put(1.0, reference), Array) and not isinstance(np.zeros(3), Array)


def test_live_arrays(reference: object) -> None:
    x = device_put(np.ones(1234), reference)
    with default_device.default_device("reference"):
        alive = [a for a in d.live_arrays() if a.shape == (1234,)]
        assert len(alive) == 1 and alive[0] is x
        x.delete()
        assert not [a for a in d.live_arrays() if a.shape == (1234,)]


def test_live_arrays_leave_other_threads_alone(reference: object) -> None:
    """CPython can't enlarge a tuple that somebody else has found."""
    x, over = device_put(np.ones(3), reference), threading.Event()
    interval = sys.getswitchinterval()

    found: list[bool] = []

    def look() -> None:
        while not over.is_set():
            found.append(any(a is x for a in d.live_arrays("reference")))

    thread = threading.Thread(target=look)
    sys.setswitchinterval(1e-5)
    try:
        thread.start()
        for _ in range(20_000):
            assert tuple(n for n in range(200))[-1] == 199
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert found and all(found)


def test_barrier_waits_for_everything() -> None:
    program = """
        import numpy as np, polyax.runtime.running.dispatch
        from polyax.api.jit import jit
        from polyax.ops.elementwise import sin
        from polyax.runtime.arrays.devices import *
        from polyax.runtime.arrays.placing import device_put
        y = jit(lambda x: sin(sin(sin(x))))(device_put(np.ones((2000, 2000), np.float32)))
        before = y.is_ready()
        effects_barrier()
        print(before, y.is_ready())
    """
    assert output(program, **REFERENCE) == "False True"


def test_default_device_by_update() -> None:
    program = """
        from polyax.ir.config import config
        from polyax.runtime.arrays.devices import *
        config.update("jax_default_device", devices()[1])
        print(default_device_now())
        config.update("jax_default_device", None)
        print(default_device_now())
    """
    assert output(program, **REFERENCE, POLYAX_NUM_CPU_DEVICES="2").split() == ["reference:1", "reference:0"]


def test_arrays_that_were_put_nowhere_follow_the_others() -> None:
    program = """
        import numpy as np, polyax.runtime.running.dispatch
        from polyax.api.jit import jit
        from polyax.ops.elementwise import add
        from polyax.runtime.arrays.devices import *
        from polyax.runtime.arrays.placing import device_put
        a, b = devices()
        free, one, two = device_put(1.0), device_put(2.0, a), device_put(3.0, b)
        for f in (add, jit(add)):
            print(f(free, one).device, f(free, two).device, f(two, free).device, add(f(two, free), free).device)
        print(free.committed, one.committed)
        add(one, two)
    """
    done = run(program, **REFERENCE, POLYAX_NUM_CPU_DEVICES="2")
    places = "reference:0 reference:1 reference:1 reference:1"
    assert done.stdout.split("\n")[:3] == [places, places, "False True"]
    assert "ValueError: Received incompatible devices for jitted computation" in done.stderr


def test_may_alias() -> None:
    x = device_put(np.ones(2), d.devices()[0])
    assert device_put(x, x.device, may_alias=True) is x
    copy = device_put(x, x.device, may_alias=False)
    x.delete()
    np.testing.assert_array_equal(copy, [1, 1])
    with pytest.raises(ValueError, match="may_alias and donate cannot be True at the same time"):
        device_put(copy, may_alias=True, donate=True)


def test_whatever_copies_itself_to_the_host() -> None:
    class Copied:
        started = 0

        def copy_to_host_async(self) -> None:
            self.started += 1

    x = [object(), 1, Copied()]
    assert d.copy_to_host_async(x) is x
    assert x[2].started == 1  # type: ignore[attr-defined]


def test_local_data_on_one_device() -> None:
    made = make_array_from_process_local_data(d.devices()[0], {"a": np.ones((2, 3))}, (2, 3))
    assert made["a"].devices() == {d.devices()[0]}
    with pytest.raises(ValueError, match="global_shape should be None or equal"):
        make_array_from_process_local_data(d.devices()[0], np.ones((2, 3)), (2, 4))


def test_traced_values_stay_on_their_way_to_the_host() -> None:
    def f(x):
        return d.device_get({"x": x, "name": "y", "n": np.arange(3)})["x"] ** 2

    assert float(polyax.jit(f)(3.0)) == 9 and float(polyax.grad(f)(3.0)) == 6


def test_places_that_are_none() -> None:
    with pytest.raises(ValueError, match="device_put` only accepts `None`.* Received invalid value: 'cpu'"):
        device_put(np.ones(2), "cpu")
    place = d.devices()[0]
    text = r"must be a tree prefix of the corresponding value; \n  Mismatch details \(1 found\):\n  pytree structure"
    with pytest.raises(ValueError, match=text):
        device_put({"a": 1, "b": 2}, {"a": place})
    with pytest.raises(ValueError, match="different lengths of tuple at key path\n.*device_put device"):
        device_put((1, 2), (place,))


def test_a_look_at_the_parts_of_an_array_does_not_tie_it_to_its_device() -> None:
    x = polyax.device_put(np.ones(3, np.float32))
    assert [s.data.shape for s in x.addressable_shards] == [(3,)] and not x.committed
