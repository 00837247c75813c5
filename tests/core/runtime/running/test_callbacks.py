"""What users' functions are called with."""

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.experimental import io_callback

SCALAR = polyax.ShapeDtypeStruct((), np.float32)


def seen_by(call, transform):
    seen = []

    def fun(*args, **kwargs):
        seen.append((args, kwargs))
        return args[0]

    transform(lambda x: call(fun, x))(1.5)
    polyax.effects_barrier()
    ((args, kwargs),) = seen
    return [*args, *kwargs.values()]


CALLS = {
    "pure": lambda fun, x: polyax.pure_callback(fun, SCALAR, x, 2, np.ones(2), n=3),
    "io": lambda fun, x: io_callback(fun, SCALAR, x, 2, np.ones(2), n=3),
    "debug": lambda fun, x: polyax.debug.callback(fun, x, 2, np.ones(2), n=3),
}


@pytest.mark.parametrize("transform", [lambda f: f, polyax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_functions_get_arrays_also_for_numbers(call, transform):
    args = seen_by(call, transform)
    assert all(isinstance(x, polyax.Array) for x in args)
    assert [str(x.dtype) for x in args] == ["float32", "int32", "float32", "int32"]
    assert [x.shape for x in args] == [(), (), (2,), ()]


def test_other_things_are_handed_on():
    seen = []
    polyax.debug.callback(lambda *args: seen.extend(args), "text", None, SCALAR)
    assert seen == ["text", None, SCALAR]


def test_arrays_that_a_function_keeps_stay_as_they_are():
    kept = []
    called = polyax.jit(lambda x: polyax.pure_callback(lambda y: kept.append(y) or y, SCALAR, x * 2) + 1)
    for n in range(3):
        called(float(n)).block_until_ready()
    assert [x.item() for x in kept] == [0, 2, 4]


def test_functions_compute_with_what_they_get():
    looped = polyax.jit(
        lambda x: polyax.lax.fori_loop(0, 3, lambda _, c: polyax.pure_callback(jnp.sin, SCALAR, c) + 1, x)
    )
    expected = 0.5
    for _ in range(3):
        expected = np.sin(expected) + 1
    np.testing.assert_allclose(looped(0.5), expected, rtol=1e-6)


def test_prints_show_arrays(capsys):
    polyax.debug.print("{x!r} {n:d} {y:.2f}", x=jnp.arange(2), n=3, y=np.float32(0.5))
    polyax.effects_barrier()
    assert capsys.readouterr().out == "Array([0, 1], dtype=int32) 3 0.50\n"


def test_something_to_call_is_needed():
    for call in (polyax.pure_callback, io_callback):
        with pytest.raises(TypeError, match="callable"):
            call(3, SCALAR, 1.0)
    with pytest.raises(TypeError, match="callable"):
        polyax.debug.callback(3, 1.0)
