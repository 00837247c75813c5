"""One process, several platforms: equal results, at the same time too, and arrays that move between them."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from support.agreement import PROGRAMS
from support.process import output, run

COMPILED = ("cpu", "opencl", "hello_c")
PLATFORMS = ("reference", *COMPILED)
ARRAYS = (
    np.float32(2.5),
    np.zeros((0, 3), np.float32),
    np.arange(24, dtype=np.int32).reshape(2, 3, 4),
    np.array([True, False, True]),
    np.arange(5, dtype=np.uint8),
)


def on(platform: str, name: str) -> list[np.ndarray]:
    """The results of a program on the first device of a platform, where they must be."""
    device = jax.devices(platform)[0]
    with jax.default_device(device):
        found = jax.tree_util.tree_leaves(PROGRAMS[name]())
    assert {d for x in found for d in x.devices()} == {device}
    return [np.asarray(x) for x in found]


def assert_agree(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if x.dtype.kind in "biu":
            np.testing.assert_array_equal(x, y)
        else:
            scale = max(1.0, float(np.abs(y).max(initial=0)))
            np.testing.assert_allclose(x.astype(float), y.astype(float), rtol=1e-4, atol=1e-5 * scale)


def agreements() -> list[Any]:
    """Each program on each compiled platform."""
    gaps = {("halves", "hello_c"): pytest.mark.xfail(reason="notimpl: C99 has no half floats", strict=True)}
    pairs = itertools.product(PROGRAMS, COMPILED)
    return [pytest.param(*pair, marks=gaps.get(pair, ())) for pair in pairs]


@pytest.mark.parametrize(("name", "compiled"), agreements())
def test_programs_agree_with_the_reference(name: str, compiled: str) -> None:
    assert_agree(on(compiled, name), on("reference", name))


def test_all_platforms_compute_at_the_same_time() -> None:
    """One thread starts work on each device in turn; nothing waits for anything before the end."""

    def step(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w) + 0.5 * x

    host = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32) / 8
    f = jax.jit(step)
    weights = {p: jax.device_put(host, jax.devices(p)[0]) for p in PLATFORMS}
    values = dict(weights)
    for _ in range(10):
        values = {p: f(x, weights[p]) for p, x in values.items()}
    want = host.astype(np.float64)
    for _ in range(10):
        want = np.tanh(want @ host) + 0.5 * want
    for p, x in values.items():
        assert x.devices() == {jax.devices(p)[0]}
        np.testing.assert_allclose(x, want, rtol=1e-3, atol=1e-4, err_msg=p)


def test_a_thread_for_each_platform() -> None:
    """Each traces, compiles and runs the same programs on its own device."""
    names = ("layers_step", "standardize", "normal_samples", "integers")
    wanted = {name: on("reference", name) for name in names}
    failed: list[BaseException] = []

    def work(platform: str, order: tuple[str, ...]) -> None:
        try:
            for name in order:
                assert_agree(on(platform, name), wanted[name])
        except BaseException as e:
            failed.append(e)

    orders = itertools.permutations(names)
    threads = [threading.Thread(target=work, args=(p, next(orders))) for p in (*PLATFORMS, *PLATFORMS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(300)
    assert not failed, failed


@pytest.mark.parametrize(("source", "target"), [*itertools.permutations(PLATFORMS, 2)])
def test_arrays_move(source: str, target: str) -> None:
    here, there = jax.devices(source)[0], jax.devices(target)[0]
    for host in ARRAYS:
        x = jax.device_put(host, here)
        y = jax.device_put(x, there)
        assert y.devices() == {there} and x.devices() == {here}
        assert (y.shape, y.dtype) == (host.shape, host.dtype)
        np.testing.assert_array_equal(y, host)


def test_a_value_goes_round() -> None:
    """Each platform adds to what it got from the one before, which may not be finished yet."""
    host = np.arange(1000, dtype=np.float32)
    f = jax.jit(lambda x: x * 2 + 1)
    x: Any = host
    for p in PLATFORMS * 2:
        x = f(jax.device_put(x, jax.devices(p)[0]))
        host = host * 2 + 1
    np.testing.assert_array_equal(x, host)


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(PLATFORMS, 2)])
def test_devices_do_not_mix_in_one_call(one: str, other: str) -> None:
    x, y = (jax.device_put(np.ones(3, np.float32), jax.devices(p)[0]) for p in (one, other))
    for f in (jnp.add, jax.jit(lambda x, y: x * y)):
        with pytest.raises(ValueError, match=f"(?s)incompatible devices.*{one.upper()}.*{other.upper()}.*device_put"):
            f(x, y)


def test_jit_for_a_device() -> None:
    for p in PLATFORMS:
        device = jax.devices(p)[0]
        assert jax.jit(lambda x: x + 1, device=device)(np.float32(1)).devices() == {device}


SHOW = "import polyax as jax; print(jax.devices()[0].platform, jax.numpy.ones(2).devices())"


@pytest.mark.parametrize(
    ("settings", "first"),
    [
        ({"POLYAX_PLATFORMS": "opencl,cpu"}, "opencl"),
        ({"POLYAX_PLATFORMS": "cpu,opencl"}, "cpu"),
        ({"POLYAX_PLATFORMS": "hello_c,opencl,cpu"}, "hello_c"),
        ({"POLYAX_PLATFORMS": "opencl", "POLYAX_DEVICE": "opencl:0"}, "opencl"),
        ({"POLYAX_DEVICE": "opencl:0"}, "opencl"),
    ],
    ids=lambda x: ",".join(x.values()) if isinstance(x, dict) else None,
)
def test_settings_choose(settings: dict[str, str], first: str) -> None:
    assert output(SHOW, **settings).split()[0] == first


def test_a_platform_of_lower_rank_is_there_too() -> None:
    program = """
        import polyax as jax
        x = jax.device_put(jax.numpy.arange(3), jax.devices("cpu")[0])
        print(jax.devices()[0], *map(str, x.devices()))
    """
    assert output(program, POLYAX_PLATFORMS="opencl,cpu") == "opencl:0 cpu:0"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"POLYAX_DEVICE": "opencl:99"}, "Unknown device 'opencl:99': there are opencl:0"),
        ({"POLYAX_PLATFORMS": "cpu", "POLYAX_DEVICE": "opencl:0"}, "POLYAX_PLATFORMS=cpu leaves 'opencl' out"),
    ],
    ids=["number", "left out"],
)
def test_devices_that_can_not_be_had(settings: dict[str, str], text: str) -> None:
    done = run(SHOW, **settings)
    assert done.returncode == 1 and text in done.stderr
