"""Plans: memory is reused, shared and donated only where nobody can tell."""

from __future__ import annotations

import numpy as np
from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import assert_same, compiled, launched, on_kernels, on_reference, planned, traced

import polyax
import polyax.numpy as jnp
from polyax import config
from polyax.ops import basis, contract, elementwise, index, joining, reduce, slicing
from polyax_kernels.plan.plan import Arena, CopyStep, KernelStep

X = np.arange(12, dtype="f4").reshape(3, 4)
ROW = np.full((1, 4), 7, "f4")
PARAMS = {"axes": (0,), "index_dtype": np.dtype("int32")}


def _buffers(backend, *arrays):
    return [backend.to_device(x, backend.devices()[0]) for x in arrays]


def _write_row(x, row):
    return index.dynamic_update_slice(x, row, (1, 0))


def test_who_reads_an_updated_array_reads_it_first() -> None:
    """Nothing is copied, though the program names the update first; but what needs the update comes after it."""

    def f(x, row):
        y = _write_row(basis.mul(x, x), row)
        z = basis.mul(x, x)
        w = _write_row(z, row)
        return [y, w, reduce.reduce_sum(z, (0,)), reduce.reduce_sum(w, (0,))]

    closed = traced(f, [X, ROW])
    assert not any(
        isinstance(s, CopyStep) and s.nbytes == X.nbytes for s in planned(NumpyKernelBackend(), closed).steps
    )
    written = X * X
    written[1] = ROW
    assert_same(on_kernels(f, [X, ROW]), [written, written, (X * X).sum(0), written.sum(0)])


def test_arena_reuses_and_joins_gaps() -> None:
    arena = Arena()
    a, b, c = arena.allocate(64), arena.allocate(128), arena.allocate(64)
    assert (a, b, c) == (0, 64, 192)
    arena.free(a, 64)
    arena.free(b, 128)
    assert arena.allocate(192) == 0
    arena.free(c, 64)
    assert arena.allocate(100) == 192  # the gap at the end grows
    assert arena.size == 192 + 128


def test_unfused_chain_needs_two_temporaries() -> None:
    def chain(x):
        for _ in range(20):
            x = elementwise.sin(x)
        return x

    plan = planned(NumpyKernelBackend(fused=False), traced(chain, [X]))
    assert len(plan.steps) == 20
    assert plan.arena_bytes <= 2 * 64


def test_result_that_is_an_input_or_given_twice() -> None:
    backend = NumpyKernelBackend()
    closed = traced(lambda x: [x, basis.reshape(x, (4, 3)), basis.add(x, x)], [X])
    assert len(planned(backend, closed).steps) == 1
    got = launched(backend, compiled(backend, closed), closed, [X])
    assert_same(got, [X, X.reshape(4, 3), X + X])

    def twice(x):
        y = basis.add(x, x)
        return [y, y]

    assert_same(on_kernels(twice, [X]), [X + X, X + X])


def test_reshape_alone_copies_nothing() -> None:
    plan = planned(NumpyKernelBackend(), traced(lambda x: basis.reshape(x, (2, 6)), [X]))
    assert not plan.steps
    assert plan.outputs == (0,)


def test_a_step_writes_where_its_reshaped_result_is_wanted() -> None:
    """A copy that only adds a dimension does nothing; one of an argument does."""

    def f(x, y):
        z = contract.dot_general(x, y, (((1,), (0,)), ((), ())))
        return [basis.expand_dims(z, (0,)), basis.expand_dims(x, (1,))]

    plan = planned(NumpyKernelBackend(), traced(f, [X, X.T.copy()]))
    assert [type(s) for s in plan.steps] == [KernelStep, CopyStep] and plan.arena_bytes == 0
    assert_same(on_kernels(f, [X, X.T.copy()]), [(X @ X.T)[None], X[:, None]])


def test_update_writes_only_the_region_of_its_own_temporary() -> None:
    backend = NumpyKernelBackend()
    closed = traced(lambda x, row: _write_row(elementwise.sin(x), row), [X, ROW])
    plan = planned(backend, closed)
    assert [type(s) for s in plan.steps] == [KernelStep, KernelStep]
    assert plan.steps[1].bytes_moved == 2 * ROW.nbytes
    assert_same(launched(backend, compiled(backend, closed), closed, [X, ROW]), on_reference(_sin_row, [X, ROW]))


def _sin_row(x, row):
    return _write_row(elementwise.sin(x), row)


def test_update_of_an_argument_copies_it_first() -> None:
    backend = NumpyKernelBackend()
    closed = traced(_write_row, [X, ROW])
    plan = planned(backend, closed)
    assert [type(s) for s in plan.steps] == [CopyStep, KernelStep]
    buffers = _buffers(backend, X, ROW)
    outs, _ = compiled(backend, closed).launch(buffers, backend.devices()[0].queue)
    np.testing.assert_array_equal(backend.to_host(buffers[0], closed.in_avals[0]), X)
    np.testing.assert_array_equal(backend.to_host(outs[0], closed.out_avals[0])[1], 7)


def test_update_of_a_donated_argument_happens_in_place() -> None:
    backend = NumpyKernelBackend()
    closed = traced(_write_row, [X, ROW])
    executable = compiled(backend, closed, donated=(True, False))
    buffers = _buffers(backend, X, ROW)
    outs, _ = executable.launch(buffers, backend.devices()[0].queue)
    assert outs[0] is buffers[0]


def test_donated_memory_that_others_see_is_left_alone() -> None:
    backend = NumpyKernelBackend()
    closed = traced(_write_row, [X, ROW])
    executable = compiled(backend, closed, donated=(True, False))
    buffers = _buffers(backend, X, ROW)
    seen = backend.to_host(buffers[0], closed.in_avals[0])
    outs, _ = executable.launch(buffers, backend.devices()[0].queue)
    np.testing.assert_array_equal(seen, X)
    np.testing.assert_array_equal(backend.to_host(outs[0], closed.out_avals[0])[1], 7)
    same = _buffers(backend, X)[0]
    both = traced(lambda x, y: _write_row(x, basis.reshape(reduce.reduce_max(y, (0,)), (1, 4))), [X, X])
    outs, _ = compiled(backend, both, donated=(True, False)).launch([same, same], backend.devices()[0].queue)
    assert outs[0] is not same


def test_results_move_into_donated_arguments() -> None:
    def step(p, g, q):
        return [basis.sub(p, basis.mul(g, 0.1)), basis.add(basis.transpose(q, (1, 0)), 1.0)]

    backend = NumpyKernelBackend()
    square = np.arange(16, dtype="f4").reshape(4, 4)
    closed = traced(step, [X, X, square])
    plan = planned(backend, closed, (True, True, True))
    assert plan.outputs == (0, 3)  # a transpose reads other elements than it writes
    executable = compiled(backend, closed, donated=(True, True, True))
    buffers = _buffers(backend, X, X + 1, square)
    outs, _ = executable.launch(buffers, backend.devices()[0].queue)
    got = [backend.to_host(b, a) for b, a in zip(outs, closed.out_avals, strict=True)]
    assert outs[0] is buffers[0]
    assert_same(got, [X - (X + 1) * np.float32(0.1), square.T + 1])


def test_several_results_of_one_kernel_move_into_donated_arguments() -> None:
    def step(p, m, g):
        m = basis.add(m, g)
        return [basis.sub(p, m), m]

    backend = NumpyKernelBackend()
    closed = traced(step, [X, X, X])
    plan = planned(backend, closed, (True, True, False))
    assert len(plan.steps) == 1
    assert set(plan.outputs) == {0, 1}
    executable = compiled(backend, closed, donated=(True, True, False))
    buffers = _buffers(backend, X, X + 1, X + 2)
    outs, _ = executable.launch(buffers, backend.devices()[0].queue)
    got = [backend.to_host(b, a) for b, a in zip(outs, closed.out_avals, strict=True)]
    assert_same(got, [X - (X + 1 + (X + 2)), X + 1 + (X + 2)])


def test_update_waits_for_readers_of_the_old_contents() -> None:
    def both(x, row):
        y = elementwise.sin(x)
        z = _write_row(y, row)
        return [z, reduce.reduce_max(y, (0, 1))]

    assert_same(on_kernels(both, [X, ROW]), on_reference(both, [X, ROW]))


def test_update_from_the_array_itself() -> None:
    def shift(x):
        y = basis.add(x, 1.0)
        return index.dynamic_update_slice(y, basis.mul(index.dynamic_slice(y, (0, 0), (2, 4)), 10.0), (1, 0))

    assert_same(on_kernels(shift, [X]), on_reference(shift, [X]))


def test_chain_of_updates_shares_one_buffer() -> None:
    def fill(row):
        x = basis.full((8, 4), 0.0)
        for n in range(8):
            x = index.dynamic_update_slice(x, row, (n, 0))
        return x

    plan = planned(NumpyKernelBackend(), traced(fill, [ROW]))
    assert len(plan.fresh) == 1
    assert plan.arena_bytes == 0
    assert_same(on_kernels(fill, [ROW]), on_reference(fill, [ROW]))


def test_equal_equations_are_computed_once() -> None:
    def f(x):
        return [elementwise.sin(x), elementwise.sin(x)]

    assert len(planned(NumpyKernelBackend(), traced(f, [X])).steps) == 1


def test_the_order_of_parameters_means_nothing() -> None:
    def f(x):
        return [*reduce.argmax_p.bind_all(x, **PARAMS), *reduce.argmax_p.bind_all(x, **dict(reversed(PARAMS.items())))]

    assert len(planned(NumpyKernelBackend(fused=False), traced(f, [X])).steps) == 1


def test_dead_code_makes_no_kernels() -> None:
    def f(x):
        elementwise.sin(x)
        return basis.add(x, x)

    assert len(planned(NumpyKernelBackend(fused=False), traced(f, [X])).steps) == 1


def test_each_distinct_kernel_is_compiled_once() -> None:
    backend = NumpyKernelBackend(fused=False)

    def chain(x):
        for _ in range(10):
            x = elementwise.sin(x)
        return x

    compiled(backend, traced(chain, [X]))
    compiled(backend, traced(chain, [X]))
    assert backend.compilations == 1


def test_eager_kernels_serve_all_sizes() -> None:
    backend = NumpyKernelBackend()
    for shape in ((3, 4), (7,), (2, 2, 5)):
        x = np.ones(shape, "f4")
        closed = traced(elementwise.sin, [x])
        assert_same(launched(backend, compiled(backend, closed, eager=True), closed, [x]), [np.sin(x)])
    assert backend.compilations == 1


def test_empty_arrays() -> None:
    empty = np.zeros((0, 4), "f4")
    for fun in (elementwise.sin, lambda x: basis.reduce_sum(x, (0,)), lambda x: basis.reshape(x, (4, 0))):
        assert_same(on_kernels(fun, [empty]), on_reference(fun, [empty]))


def test_long_concatenation_is_copies_of_blocks() -> None:
    pieces = [np.full((2, 3), n, "f4") for n in range(40)]
    backend = NumpyKernelBackend()
    for dimension, copies in ((0, True), (1, False)):
        closed = traced(lambda *xs, d=dimension: joining.concatenate(xs, d), pieces)
        steps = planned(backend, closed).steps
        assert all(isinstance(s, CopyStep) == copies for s in steps)
        got = launched(backend, compiled(backend, closed), closed, pieces)
        assert_same(got, [np.concatenate(pieces, dimension)])


def test_rows_are_cut_by_copies() -> None:
    backend = NumpyKernelBackend()
    closed = traced(lambda x: slicing.slice(x, (1, 0), (3, 4)), [X])
    assert [type(s) for s in planned(backend, closed).steps] == [CopyStep]
    assert_same(launched(backend, compiled(backend, closed), closed, [X]), [X[1:3]])


def test_bytes_moved_count_each_element_once() -> None:
    """A column that is read again in each row is read once."""
    wide = np.ones((3, 50), "f4")
    closed = traced(lambda x, y: basis.add(x, basis.reshape(slicing.slice(y, (0, 0), (3, 1)), (3, 1))), [ROW, wide])
    (step,) = planned(NumpyKernelBackend(), closed).steps
    assert step.bytes_moved == ROW.nbytes + 4 * 3 + 4 * 3 * 4


def test_donated_memory_of_wider_rows_is_left_alone() -> None:
    """What is read at the own point has another place in a wider row."""
    x = np.arange(64, dtype="f4").reshape(8, 8)

    def fun(x):
        return x[:, :4].astype("f8") * 2

    with config.override(enable_x64=True):
        closed, backend = traced(fun, [x]), NumpyKernelBackend()
        assert_same(launched(backend, compiled(backend, closed, donated=(True,)), closed, [x]), [fun(x)])
        np.testing.assert_array_equal(polyax.jit(fun, donate_argnums=0)(jnp.array(x)), fun(x))
