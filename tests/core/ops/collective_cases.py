"""Collectives on devices against NumPy and against ``vmap``. Run by ``test_collectives.py``, which gives devices."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax

N = len(polyax.devices())
RNG = np.random.default_rng(0)
COMPLEX = [np.complex64] if polyax.default_backend() == "reference" else []
"""Kernels have no complex numbers."""
X = RNG.normal(size=(N, N, 4 * N)).astype(np.float32)
PERM = [(n, (n + 1) % N) for n in range(N - 1)]
HALVES = [list(range(N // 2)), list(range(N // 2, N))]
PAIRS = [[n, n + N // 2] for n in range(N // 2)]

on_devices = pytest.mark.skipif(N < 2, reason="run by test_collectives.py, with several devices")


def everywhere(row):
    return np.stack([row] * N)


def scattered(x):
    return x.sum(0)


CASES = {
    "psum": (lambda x: lax.psum(x, "i"), lambda x: everywhere(x.sum(0))),
    "pmean": (lambda x: lax.pmean(x, "i"), lambda x: everywhere(x.mean(0))),
    "pmax": (lambda x: lax.pmax(x, "i"), lambda x: everywhere(x.max(0))),
    "pmin": (lambda x: lax.pmin(x, "i"), lambda x: everywhere(x.min(0))),
    "all_gather": (lambda x: lax.all_gather(x, "i"), everywhere),
    "all_gather axis": (lambda x: lax.all_gather(x, "i", axis=-1), lambda x: everywhere(np.moveaxis(x, 0, -1))),
    "all_gather tiled": (
        lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
        lambda x: everywhere(np.concatenate(x, 1)),
    ),
    "ppermute": (lambda x: lax.ppermute(x, "i", PERM), lambda x: np.concatenate([0 * x[:1], x[:-1]])),
    "pshuffle": (lambda x: lax.pshuffle(x, "i", range(N)[::-1]), lambda x: x[::-1]),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 0), lambda x: np.swapaxes(x, 0, 1)),
    "all_to_all axes": (lambda x: lax.all_to_all(x, "i", 0, 1), lambda x: np.moveaxis(x, 1, 0).swapaxes(1, 2)),
    "all_to_all tiled": (
        lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
        lambda x: np.stack([np.concatenate(np.split(x, N, 2)[n]) for n in range(N)]),
    ),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i"), scattered),
    "psum_scatter tiled": (
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
        lambda x: np.stack(np.split(x.sum(0), N, 1)),
    ),
    "pswapaxes": (lambda x: lax.pswapaxes(x, "i", 0), lambda x: np.swapaxes(x, 0, 1)),
    "pbroadcast": (lambda x: lax.pbroadcast(x, "i", 1), lambda x: everywhere(x[1])),
    "pcast": (lambda x: lax.pcast(x, "i", to="varying"), lambda x: x),
    "axis_index": (lambda x: lax.axis_index("i"), lambda x: np.arange(N)),
    "axis_size": (lambda x: x / lax.axis_size("i") + lax.psum(1, "i"), lambda x: x / N + N),
    "psum groups": (
        lambda x: lax.psum(x, "i", axis_index_groups=HALVES),
        lambda x: np.repeat(np.stack([x[g].sum(0) for g in HALVES]), N // 2, 0),
    ),
    "psum uneven groups": (
        lambda x: lax.psum(x, "i", axis_index_groups=[[0], list(range(1, N))]),
        lambda x: np.concatenate([x[:1], everywhere(x[1:].sum(0))[1:]]),
    ),
    "pmean groups": (
        lambda x: lax.pmean(x, "i", axis_index_groups=PAIRS),
        lambda x: np.concatenate([x[: N // 2] + x[N // 2 :]] * 2) / 2,
    ),
    "all_gather groups": (
        lambda x: lax.all_gather(x, "i", axis_index_groups=PAIRS),
        lambda x: np.concatenate([np.stack([x[: N // 2], x[N // 2 :]], 1)] * 2),
    ),
    "psum_scatter groups": (
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, axis_index_groups=HALVES, tiled=True),
        lambda x: np.concatenate([np.stack(np.split(x[g].sum(0), N // 2, 1)) for g in HALVES]),
    ),
    "all_to_all groups": (
        lambda x: lax.all_to_all(x, "i", 1, 0, axis_index_groups=HALVES, tiled=True),
        lambda x: np.concatenate([[np.concatenate(part) for part in np.split(x[g], N // 2, 2)] for g in HALVES]),
    ),
}
SAMPLE = ("psum", "pmean", "pmax", "all_gather", "ppermute", "all_to_all", "psum_scatter tiled", "psum groups")
DIFFERENTIABLE = [name for name in CASES if name not in ("pmax", "pmin", "axis_index")]


@on_devices
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.sample] * (n in SAMPLE)) for n in CASES])
def test_values(name):
    f, oracle = CASES[name]
    for got in (polyax.pmap(f, "i")(X), polyax.vmap(f, axis_name="i")(X)):
        np.testing.assert_allclose(got, oracle(X), 1e-4, 1e-5)


@on_devices
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives(name):
    """Linear functions are their own derivatives; along the axis, gradients are the transposed matrix."""
    f, oracle = CASES[name]
    ct = RNG.normal(size=oracle(X).shape).astype(np.float32)
    offset = oracle(0 * X)
    expected = np.vdot(oracle(X) - offset, ct)
    for mapped in (polyax.pmap(f, "i"), polyax.vmap(f, axis_name="i")):
        _, tangent = polyax.jvp(mapped, (X,), (2 * X,))
        np.testing.assert_allclose(tangent, 2 * (oracle(X) - offset), 1e-4, 1e-5)
        _, pullback = polyax.vjp(mapped, X)
        np.testing.assert_allclose(np.vdot(pullback(jnp.asarray(ct))[0], X), expected, 1e-3, 1e-3)


@on_devices
@pytest.mark.parametrize("dtype", [np.int32, np.float16, jnp.bfloat16, np.uint8, *COMPLEX])
def test_dtypes_stay(dtype):
    x = np.arange(N * 3).reshape(N, 3).astype(dtype)
    got = polyax.pmap(lambda x: lax.psum(x, "i"), "i")(x)
    assert got.dtype == dtype
    np.testing.assert_array_equal(np.asarray(got)[0].astype(np.complex64), x.astype(np.complex64).sum(0))


def test_truth_values_are_counted():
    holds = X[:, 0] > 0
    for mapped in (polyax.vmap, polyax.pmap) if N > 1 else (polyax.vmap,):
        counted = mapped(lambda x: lax.psum(x, "i"), axis_name="i")(holds)
        assert counted.dtype == np.int32
        np.testing.assert_array_equal(counted, everywhere(holds.sum(0)))
        np.testing.assert_allclose(
            mapped(lambda x: lax.pmean(x, "i"), axis_name="i")(holds), everywhere(holds.mean(0)), 1e-6
        )
        assert mapped(lambda x: lax.pmax(x, "i"), axis_name="i")(holds).dtype == bool
        assert mapped(lambda x: lax.psum(x, ()), axis_name="i")(holds).dtype == bool
        with pytest.raises(ValueError, match="duplicate value in 'axes' of reduction"):
            mapped(lambda x: lax.psum(x, ("i", "i")), axis_name="i")(X)


@on_devices
def test_large_operands_and_many_at_once():
    tree = {"a": RNG.normal(size=(N, 50_001)).astype(np.float32), "b": [np.ones((N, 7), np.int32)]}
    got = polyax.pmap(lambda t: lax.psum(t, "i"), "i")(tree)
    np.testing.assert_allclose(got["a"][N - 1], tree["a"].sum(0), 1e-4, 1e-4)
    np.testing.assert_array_equal(got["b"][0][0], np.full(7, N))
    bits = {np.asarray(row).tobytes() for row in got["a"]}
    assert len(bits) == 1  # all get the same
    means = polyax.pmap(lambda t: lax.pmean(t, "i"), "i")(tree)
    np.testing.assert_allclose(means["b"][0], np.ones((N, 7)))
    big = polyax.pmap(lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), "i")(tree["a"][:, : N * 6000])
    np.testing.assert_array_equal(big, tree["a"][:, : N * 6000].reshape(N, N, -1).swapaxes(0, 1).reshape(N, -1))


@on_devices
def test_along_an_axis_of_devices_and_one_of_examples():
    x = RNG.normal(size=(N, 3, 3 * N)).astype(np.float32)

    def f(x):
        both = ("i", "j")
        return (
            lax.psum(x, both),
            lax.axis_index(both),
            lax.all_gather(x[0], both),
            lax.psum_scatter(x, both, tiled=True),
        )

    total, index, gathered, own = polyax.pmap(polyax.vmap(f, axis_name="j"), "i")(x)
    np.testing.assert_allclose(total[0, 0], x.sum((0, 1)), 1e-4, 1e-5)
    np.testing.assert_array_equal(index, np.arange(3 * N).reshape(N, 3))
    np.testing.assert_allclose(gathered[0, 0], x[:, :, 0].reshape(-1))
    np.testing.assert_allclose(own, x.sum((0, 1)).reshape(N, 3, 1), 1e-4, 1e-5)
