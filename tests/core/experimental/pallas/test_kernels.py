"""Kernels on grids: which blocks they see, what is left where, in loops, on every platform and transformed."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.experimental import pallas as pl
from polyax.experimental.pallas import tpu, triton

ROW = pl.BlockSpec((1, 3), lambda i: (i, 0))


def like(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def doubled(x_ref, o_ref):
    o_ref[...] = 2 * x_ref[...]


def marked(x_ref, o_ref):
    """Which place wrote, and how many there are."""
    o_ref[...] = x_ref[...] + 10 * pl.program_id(0) + 100 * pl.num_programs(0)


def test_without_a_grid_all_is_seen():
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(pl.pallas_call(doubled, like(2, 3))(x), 2 * x)


@pytest.mark.parametrize("interpret", [True, False])
def test_blocks_of_rows(interpret):
    x = jnp.zeros((2, 3))
    call = pl.pallas_call(marked, like(2, 3), grid=2, in_specs=[ROW], out_specs=ROW, interpret=interpret)
    np.testing.assert_array_equal(call(x), [[200] * 3, [210] * 3])


def test_a_product_in_blocks_that_are_summed_in_scratch_memory():
    def kernel(x_ref, y_ref, o_ref, sum_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += x_ref[...] @ y_ref[...]

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o_ref[...] = sum_ref[...]

    x, y = jax.random.normal(jax.random.key(0), (2, 8, 8))
    call = pl.pallas_call(
        kernel,
        like(8, 8),
        grid=(2, 2, 4),
        in_specs=[pl.BlockSpec((4, 2), lambda i, j, k: (i, k)), pl.BlockSpec((2, 4), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((4, 4), lambda i, j, k: (i, j)),
        scratch_shapes=[tpu.VMEM((4, 4), jnp.float32)],
    )
    np.testing.assert_allclose(jax.jit(call)(x, y), x @ y, rtol=1e-4, atol=1e-5)


def test_a_block_that_sticks_out_is_cut_off():
    block = pl.BlockSpec((4,), lambda i: i)
    seen = pl.pallas_call(lambda x, o, s: s.__setitem__(..., x[...]), (like(6), like(2, 4)), grid=2, in_specs=[block],
                          out_specs=(block, pl.BlockSpec((None, 4), lambda i: (i, 0))))  # fmt: skip
    whole, rows = seen(jnp.arange(6.0))
    assert np.isnan(whole).all()
    np.testing.assert_array_equal(rows, [[0, 1, 2, 3], [4, 5, np.nan, np.nan]])


@pytest.mark.parametrize(
    ("dim", "starts", "expected"),
    [
        (pl.Element(3), lambda i: i, [[0, 1, 2], [1, 2, 3]]),
        (pl.Element(3, (1, 0)), lambda i: i, [[np.nan, 0, 1], [0, 1, 2]]),
        (pl.BoundedSlice(3), lambda i: pl.ds(i, 3), [[0, 1, 2], [1, 2, 3]]),
        (pl.Blocked(3), lambda i: (0,), [[0, 1, 2], [0, 1, 2]]),
    ],
    ids=["element", "padded", "slice", "blocked"],
)
def test_kinds_of_block_dimensions(dim, starts, expected):
    call = pl.pallas_call(
        lambda x, o: o.__setitem__(..., x[...]),
        like(2, 3),
        grid=(2,),
        in_specs=[pl.BlockSpec((dim,), starts)],
        out_specs=pl.BlockSpec((pl.squeezed, 3), lambda i: (i, 0)),
    )
    np.testing.assert_array_equal(call(jnp.arange(4.0)), expected)


def test_what_is_not_written_is_seen():
    found = pl.pallas_call(lambda *_: None, (like(2), like(1, dtype=jnp.int8), like(1, dtype=jnp.bool_)))()
    assert np.isnan(found[0]).all()
    assert (found[1].item(), found[2].item()) == (-128, False)


def test_a_result_begins_as_the_argument_that_it_aliases():
    x = jnp.arange(3.0)
    call = pl.pallas_call(lambda x_ref, o_ref: o_ref.__setitem__(0, 9.0), x, input_output_aliases={0: 0})
    assert call(x).tolist() == [9, 1, 2]
    assert x.tolist() == [0, 1, 2]


def test_trees_of_arguments_and_results():
    def kernel(tree, out):
        out["sum"][...] = tree["a"][...] + tree["b"][...]

    given = {"a": jnp.ones(2), "b": jnp.arange(2.0)}
    assert pl.pallas_call(kernel, {"sum": like(2)})(given)["sum"].tolist() == [1, 2]


def test_index_maps_read_arguments_that_come_first():
    spec = tpu.PrefetchScalarGridSpec(
        1, grid=(3,), in_specs=[pl.BlockSpec((1, 2), lambda i, which: (which[i], 0))],
        out_specs=pl.BlockSpec((1, 2), lambda i, which: (i, 0)),
    )  # fmt: skip
    call = pl.pallas_call(lambda which, x, o: o.__setitem__(..., x[...]), like(3, 2), grid_spec=spec)
    x = jnp.arange(8.0).reshape(4, 2)
    np.testing.assert_array_equal(call(jnp.array([2, 0, 2]), x), x[jnp.array([2, 0, 2])])


def test_a_grid_that_is_computed():
    def call(n, x):
        fill = lambda x_ref, o_ref: o_ref.__setitem__(pl.program_id(0), pl.num_programs(0))
        return pl.pallas_call(fill, x, grid=(n,), input_output_aliases={0: 0})(x)

    assert jax.jit(call)(2, jnp.zeros(4, jnp.int32)).tolist() == [2, 2, 0, 0]


def test_axes_with_names_have_sizes():
    def kernel(x_ref, o_ref):
        assert (jax.lax.psum(1, "i"), jax.lax.axis_size("j")) == (2, 3)
        o_ref[...] = x_ref[...] + pl.program_id(0)

    block = pl.BlockSpec((1, 1), lambda i, j: (i, j))
    call = pl.pallas_call(kernel, like(2, 3), grid=(("i", 2), ("j", 3)), in_specs=[block], out_specs=block)
    assert call(jnp.zeros((2, 3))).tolist() == [[0] * 3, [1] * 3]


def test_functions_under_jit_belong_to_each_kernel():
    @jax.jit
    def moved(x):
        return x + pl.program_id(0)

    def kernel(x_ref, o_ref):
        o_ref[...] = jax.lax.fori_loop(0, 2, lambda _, x: moved(x), moved(x_ref[...]))

    def call(n):
        block = pl.BlockSpec((1,), lambda i: i)
        return pl.pallas_call(kernel, like(n, dtype=jnp.int32), grid=n, in_specs=[block], out_specs=block)

    assert call(3)(jnp.zeros(3, jnp.int32)).tolist() == [0, 3, 6]
    assert call(2)(jnp.ones(2, jnp.int32)).tolist() == [1, 4]


def test_masks_slices_loops_and_memory_of_their_own():
    def kernel(x_ref, o_ref):
        def inside(kept):
            kept[...] = triton.load(x_ref, mask=x_ref[...] > 1, other=-1.0)

            @pl.loop(0, 4, step=2)
            def _(i):
                triton.store(o_ref.at[pl.ds(i, 2)], kept[pl.ds(i, 2)] * 2, mask=jnp.array([True, False]))

        pl.run_scoped(inside, pl.ANY((4,), jnp.float32))

    out = pl.pallas_call(kernel, like(4), input_output_aliases={0: 0})(jnp.arange(4.0))
    assert out.tolist() == [-2, 1, 4, 3]


def test_attention_in_one_pass():
    def kernel(q_ref, k_ref, v_ref, o_ref):
        q = q_ref[...]

        def body(j, carry):
            most, total, out = carry
            rows = pl.ds(4 * j, 4)
            scores = q @ k_ref[rows, :].T
            more = jnp.maximum(most, scores.max(1))
            p, kept = jnp.exp(scores - more[:, None]), jnp.exp(most - more)
            return more, total * kept + p.sum(1), out * kept[:, None] + p @ v_ref[rows, :]

        first = (jnp.full(4, -jnp.inf), jnp.zeros(4), jnp.zeros(q.shape))
        _, total, out = jax.lax.fori_loop(0, k_ref.shape[0] // 4, body, first)
        o_ref[...] = out / total[:, None]

    q, k, v = jax.random.normal(jax.random.key(1), (3, 8, 4))
    block, whole = pl.BlockSpec((4, 4), lambda i: (i, 0)), pl.BlockSpec((8, 4), lambda i: (0, 0))
    call = pl.pallas_call(kernel, like(8, 4), grid=2, in_specs=[block, whole, whole], out_specs=block)
    attention = lambda q, k, v: jax.nn.softmax(q @ k.T) @ v
    np.testing.assert_allclose(call(q, k, v), attention(q, k, v), rtol=1e-4, atol=1e-5)
    loss = lambda f: lambda *xs: jnp.sum(f(*xs) ** 2)
    for ours, direct in zip(*(jax.grad(loss(f), (0, 1, 2))(q, k, v) for f in (call, attention)), strict=True):
        np.testing.assert_allclose(ours, direct, rtol=1e-3, atol=1e-4)


def test_mapped():
    call = pl.pallas_call(marked, like(2, 3), grid=2, in_specs=[ROW], out_specs=ROW)
    xs = jnp.arange(12.0).reshape(2, 2, 3)
    np.testing.assert_array_equal(jax.vmap(call)(xs), jnp.stack([call(x) for x in xs]))


def test_rolled_rows():
    x = jnp.arange(6).reshape(2, 3)
    assert tpu.roll(x, 1, 1).tolist() == [[2, 0, 1], [5, 3, 4]]
    assert tpu.roll(x, 0, 1, stride=1, stride_axis=0).tolist() == [[0, 1, 2], [5, 3, 4]]
    with pytest.raises(ValueError, match="must be both specified or not specified"):
        tpu.roll(x, 0, 1, stride=1)


def test_numbers_printed_from_kernels(capfd):
    def kernel(x_ref, o_ref):
        pl.debug_print("row", pl.program_id(0))
        pl.debug_print("first {}", x_ref[0])

    pl.pallas_call(kernel, like(2), grid=1)(jnp.array([3.0, 4.0]))
    jax.effects_barrier()
    assert capfd.readouterr().out.splitlines() == ["row 0", "first 3.0"]


def test_new_arrays():
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        assert jax.typeof(pl.empty((2,), jnp.float32, out_sharding=jax.P("x"))).sharding.spec == jax.P("x")
    assert jax.tree.map(jnp.shape, pl.empty_like([like(2), like(3)])) == [(2,), (3,)]
    assert pl.broadcast_to(jnp.arange(2), (3, 2)).shape == (3, 2)


RUN = functools.partial(pl.pallas_call, doubled, like(2, 3))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: RUN(in_specs=[pl.BlockSpec((3,))]), r"Block shape for args\[0\] .* array shape \(2, 3\)"),
        (
            lambda: RUN(grid=2, in_specs=[pl.BlockSpec((1, 3), lambda i: (i,))]),
            "must return 2 values to match",
        ),
        (lambda: RUN(grid=2, in_specs=[pl.BlockSpec((1, 3), lambda i: (i, 0.0))]), "must return integer scalars"),
        (lambda: RUN(grid=2, in_specs=[pl.BlockSpec((pl.BoundedSlice(1), 3), lambda i: (i, 0))]), "should be pl.Slice"),
        (lambda: RUN(in_specs=[pl.BlockSpec()] * 2), "tuple of length 2 but `inputs` is a tuple of length 1"),
        (
            lambda: RUN(in_specs=[[pl.BlockSpec()]]),
            r"at \[0\], `in_specs` is a <class 'list'> but `inputs` is a pytree leaf, so",
        ),
        (lambda: RUN(in_specs=pl.BlockSpec()), "`in_specs` must be a tuple or a list"),
        (lambda: RUN(in_specs=[pl.BlockSpec(("x", 3))]), "Unsupported block dimension type: <class 'str'>"),
        (lambda: RUN(grid=(1.5,)), "Grid must be a tuple of integers"),
        (lambda: RUN(grid=2, grid_spec=pl.GridSpec()), "If `grid_spec` is specified, then `grid` must be"),
        (
            lambda: pl.pallas_call(doubled, like(4), input_output_aliases={0: 0}),
            r"'0:0' referring to input\[0\] with abstract value float32\[2,3\] and to output\[0\] with a different .*",
        ),
        (lambda: RUN(input_output_aliases={1: 0}), r"input index 1 outside the range \[0, 1\)"),
        (lambda: pl.pallas_call(lambda x, o: 3, like(2, 3)), "should return None. It returns a PyTree"),
        (lambda: pl.pallas_call(lambda x, o: pl.program_id(1), like(2, 3), grid=2), "Axis 1 is out of bounds"),
        (lambda: pl.next_power_of_2(-1), "non-negative"),
        (lambda: pl.CostEstimate(1.0, 0, 0), "flops is not an int"),
        (lambda: pl.program_id(0), "outside of a kernel"),
    ],
)
def test_bad_input(make, told):
    with pytest.raises(ValueError, match=told):
        make()(jnp.zeros((2, 3)))
