"""Functions that fill buffers: what they see, where their results are, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.experimental.buffer_callback import ExecutionStage, buffer_callback


def scaled(context, out, x, *, by=2.0):
    assert context.stage is ExecutionStage.EXECUTE
    assert (x.writeable, out.writeable) == (False, True)
    np.asarray(out)[...] = by * np.from_dlpack(x)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_results_are_what_was_written(wrap):
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(wrap(buffer_callback(scaled, x))(x), [0, 2, 4])


def test_trees_of_buffers():
    def swap(context, out, tree):
        for name, there in zip("ab", "ba", strict=True):
            np.asarray(out[name])[...] = tree[there]
            assert (tree[name].shape, tree[name].ndim, tree[name].dtype) == ((2,), 1, np.int32)

    tree = {"a": jnp.zeros(2, jnp.int32), "b": jnp.ones(2, jnp.int32)}
    assert buffer_callback(swap, tree)(tree)["a"].tolist() == [1, 1]


@pytest.mark.parametrize(("method", "shapes"), [("sequential", [(3,)] * 2), ("broadcast_all", [(2, 3)])])
def test_mapped_as_the_method_says(method, shapes):
    seen = []

    def note(context, out, x):
        seen.append(x.shape)
        scaled(context, out, x)

    call = buffer_callback(note, jax.ShapeDtypeStruct((3,), jnp.float32), vmap_method=method)
    np.testing.assert_array_equal(jax.vmap(call)(jnp.ones((2, 3))), np.full((2, 3), 2))
    assert seen == shapes


def test_with_an_effect_it_is_called_though_no_one_asks():
    seen = []
    call = buffer_callback(lambda context, out, x: seen.append(np.asarray(x).item()), (), has_side_effect=True)
    jax.jit(lambda x: (call(x), x)[1])(jnp.int32(3))
    jax.effects_barrier()
    assert seen == [3]


def test_an_aliased_result_begins_as_its_argument():
    def add_to_first(context, out, x):
        np.asarray(out)[0] += 10

    x = jnp.arange(3)
    assert buffer_callback(add_to_first, x, input_output_aliases={0: 0})(x).tolist() == [10, 1, 2]
    assert x.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("aliases", "told"),
    [
        ({1: 0}, r"'1:0' with input index 1 outside the range \[0, 1\)"),
        ({0: 2}, r"'0:2' with output index 2 outside the range \[0, 2\)"),
        ({0: 1}, r"'0:1' referring to an input with abstract value .*float32\[3\].* different abstract value"),
    ],
)
def test_aliases_that_cannot_be(aliases, told):
    x = jnp.arange(3.0)
    with pytest.raises(ValueError, match=told):
        buffer_callback(scaled, (x, jnp.int32(1)), input_output_aliases=aliases)(x)


def test_results_are_not_returned():
    x = jnp.arange(3.0)
    with pytest.raises(Exception, match="buffer_callback callback must not return any values"):
        buffer_callback(lambda context, out, x: 3, x)(x).block_until_ready()


def test_there_is_no_stream():
    def ask(context, out, x):
        return context.stream

    x = jnp.arange(3.0)
    with pytest.raises(Exception, match="runs on the host, where there is no stream"):
        buffer_callback(ask, x)(x).block_until_ready()
