"""Collectives: on devices, in processes that have several; under nested ``vmap``, and called badly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from support import process

CASES = Path(__file__).with_name("collective_cases.py")


@pytest.mark.parametrize("platform_name", ["cpu", "reference"])
def test_on_eight_virtual_devices(platform_name):
    process.cases(CASES, POLYAX_DEVICE=platform_name, POLYAX_NUM_CPU_DEVICES="8")


@pytest.mark.parametrize("platform_name", ["opencl", "hello_c"])
def test_on_two_devices(platform_name):
    process.cases(CASES, POLYAX_DEVICE=platform_name, POLYAX_NUM_CPU_DEVICES="2", ARGUMENTS="-m sample")


def mapped(f, size=4):
    return polyax.vmap(f, axis_name="i")(np.arange(float(size * size), dtype=np.float32).reshape(size, size))


def test_integers_have_a_mean_that_is_a_float():
    got = polyax.vmap(lambda x: lax.pmean(x, "i"), axis_name="i")(np.array([1, 2]))
    assert got.dtype == np.float32 and got.tolist() == [1.5, 1.5]


def test_numbers_of_python_stay_weak():
    x = np.ones(2, np.float32)
    along = lambda f: polyax.vmap(lambda v: f((v, 1), "i"), axis_name="i")(x)[1]
    assert along(lax.psum).weak_type and along(lax.psum).tolist() == [2, 2]
    assert along(lax.pmean).weak_type and along(lax.pmean).dtype == np.float32
    held = polyax.vmap(lambda v: lax.psum(True, "i"), axis_name="i")(x)
    assert held.tolist() == [2, 2] and not held.weak_type


@pytest.mark.parametrize("reduce", [lax.psum, lax.pmean, lax.pmax, lax.pmin])
def test_along_no_axis(reduce):
    x = np.arange(4.0, dtype=np.float32)
    assert mapped(lambda x: reduce(x, ())).shape == (4, 4) and np.array_equal(reduce(x, ()), x)
    assert np.array_equal(polyax.jit(lambda x: reduce(x, ()))(x), x)
    assert mapped(lambda x: lax.axis_index(())).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_along_dimensions(name):
    reduce, x = getattr(lax, "p" + name), np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    along = getattr(np, name)
    assert np.array_equal(reduce(x, 0), along(x, 0)) and np.array_equal(reduce(x, (0, -1)), along(x, (0, 2)))
    assert np.array_equal(polyax.vmap(lambda y: reduce(y, 0), axis_name="i")(x), along(x, 1))
    assert np.array_equal(polyax.vmap(lambda y: reduce(y, ("i", 0)), axis_name="i")(x), [along(x, (0, 1))] * 2)
    with pytest.raises(ValueError, match="out-of-bounds indices for float32"):
        reduce(x, 3)
    with pytest.raises(ValueError, match="only supported for sums over just named axes"):
        mapped(lambda x: lax.psum(x, ("i", 0), axis_index_groups=[[0, 1], [2, 3]]))


def test_what_is_the_same_for_all_counts_as_often_as_there_are_programs():
    def f(x):
        same = jnp.float32(3)
        return lax.psum((x, same), "i"), lax.psum(same, "i"), lax.pmax((x, same), "i"), lax.pmean((x, same), "i")

    x = np.arange(4, dtype=np.float32)
    (total, three), alone, (high, same), means = polyax.vmap(f, axis_name="i", out_axes=None)(x)
    assert (total, three, alone, high, same) == (6, 12, 12, 3, 3) and [*means] == [1.5, 3]


def test_programs_read_as_they_were_written():
    text = str(
        polyax.make_jaxpr(lambda x: (lax.psum(x, "i"), lax.ppermute(x, "i", [(0, 1)])), axis_env=[("i", 2)])(1.0)
    )
    assert "psum[axes=('i',) axis_index_groups=None]" in text
    assert "ppermute[axis_name=('i',) perm=((0, 1),)]" in text


def test_axes_that_nobody_binds_are_named():
    with pytest.raises(NameError, match=r"unbound axis name: j.*bound here: i\."):
        mapped(lambda x: lax.psum(x, "j"))
    with pytest.raises(NameError, match=r"unbound axis name: i.*bound here: none"):
        lax.axis_index("i")


BAD = {
    "must cover all indices exactly once": lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [1, 2]]),
    "must all be the same size": lambda x: lax.all_gather(x, "i", axis_index_groups=[[0], [1, 2, 3]]),
    r"sources and destinations must be unique, got \(\(0, 1\), \(0, 2\)\)": lambda x: lax.ppermute(
        x, "i", [(0, 1), (0, 2)]
    ),
    "destinations must be less than the size 4": lambda x: lax.ppermute(x, "i", [(0, 9)]),
    "does not represent a permutation": lambda x: lax.pshuffle(x, "i", [0, 0, 1, 2]),
    r"scatter dimension size 4 must be divisible by shard_count 3: dimension 0 of float32\[4\]": lambda x: (
        lax.psum_scatter(x[:4], "i", tiled=True)
    ),
    "operand scatter dimension size 3 must match shard_count 4": lambda x: lax.psum_scatter(x[:3], "i"),
    "to equal x.shape.split_axis., but they are 4 and 3": lambda x: lax.all_to_all(x[:3], "i", 0, 0),
    r"split_axis \(3\) has to be divisible by the size of the named axis i \(4\)": lambda x: lax.all_to_all(
        x[:3], "i", 0, 0, tiled=True
    ),
    "dimension 3 is out of range": lambda x: lax.all_to_all(x, "i", 3, 0),
    "less than the size 4 of the axis, not 7": lambda x: lax.pbroadcast(x, "i", 7),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_calls_say_what_is_wrong(message):
    with pytest.raises(ValueError, match=message):
        if "shard_count 3" in message:
            polyax.vmap(BAD[message], axis_name="i")(np.zeros((3, 4), np.float32))
        mapped(BAD[message])
