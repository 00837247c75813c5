"""Random bits, whose golden values are JAX's."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
from polyax import lax, random
from polyax.lax import RandomAlgorithm

KEYS = {
    "philox2x32": [4280135257],
    "philox4x32": [1713891541, 3781805453],
    "threefry4x32": [2624366954, 3783175782, 4228967636, 1381410776],
}


every = pytest.mark.parametrize("name", KEYS)


FOLDED = {
    "philox2x32": [3294195293],
    "philox4x32": [3516041854, 1098480478],
    "threefry4x32": [209414756, 1030469228, 3001416878, 1430915564],
}


SPLIT = {
    "philox2x32": [454347279, 1599509636, 3794216166],
    "philox4x32": [4176986542, 983329049, 3775940172, 2377464093, 769249501, 3389325889],
    "threefry4x32": [
        2710352670, 2749407344, 1801945316, 3177375456, 3250147889, 700940184, 597831671, 2337861200, 669528892,
        3938190136, 529655310, 1599414321,
    ],
}  # fmt: skip


BITS = {
    "philox2x32": [721757809, 811800380, 3734996749],
    "philox4x32": [2455879424, 3810592336, 2602001797],
    "threefry4x32": [3563681130, 3941503572, 1085729509],
}


LONG = {
    "philox2x32": [1951406705138068606, 6869841578122642360],
    "philox4x32": [17940020594705459481, 16487860037101032344],
    "threefry4x32": [14621837764535142032, 108739255805461394],
}


SEEDED = {
    "philox2x32": [326457608],
    "philox4x32": [3070865155, 1409865214],
    "threefry4x32": [3617711967, 3739764675, 2917855108, 609554591],
}


@every
def test_keys(name, platform):
    key = random.key(3, impl=name)
    assert random.key_data(random.key(0, impl=name)).tolist() == KEYS[name]
    assert random.key_data(polyax.jit(lambda s: random.key(s, impl=name))(0)).tolist() == KEYS[name]
    assert random.PRNGKey(0, impl=name).tolist() == KEYS[name]
    assert random.key_data(random.fold_in(key, 7)).tolist() == FOLDED[name]
    assert random.key_data(random.split(key, 3)).ravel().tolist() == SPLIT[name]
    assert random.key_impl(key) == name


@every
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_bits(name, dtype, platform):
    found = random.bits(random.key(3, impl=name), (3,), dtype)
    assert found.dtype == dtype and found.tolist() == [b % 2 ** (8 * found.dtype.itemsize) for b in BITS[name]]


@every
def test_64_bits(name, platform):
    with polyax.enable_x64(True):
        assert random.bits(random.key(3, impl=name), (2,), "uint64").tolist() == LONG[name]
        assert random.key_data(random.key(2**40 + 3, impl=name)).tolist() == SEEDED[name]


STATE = np.uint32([1, 2, 3, 4])


PHILOX = [512747620, 1298009047, 1267190206, 761827841, 1383286907]


THREEFRY = [1576285164, 2249660814, 740599976, 2425682526, 2436392515]


@pytest.mark.parametrize(
    ("algorithm", "bits", "steps"),
    [("RNG_DEFAULT", PHILOX, 2), ("RNG_PHILOX", PHILOX, 2), ("RNG_THREE_FRY", THREEFRY, 3)],
)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_bits_of_algorithms(algorithm, bits, steps, dtype, platform):
    state, found = lax.rng_bit_generator(STATE, (5,), dtype, RandomAlgorithm[algorithm])
    assert state.tolist() == [1, 2, 3 + steps, 4] and state.dtype == np.uint32
    assert found.dtype == dtype and found.tolist() == [b % 2 ** (8 * found.dtype.itemsize) for b in bits]
