"""Instruction fusion: how many kernels programs become, the reasons given, and equal results."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import assert_same, compiled, launched, on_kernels, on_reference, planned, traced

from polyax.ops import basis, contract, elementwise, index, joining, reduce, scatter, slicing
from polyax_kernels.ir.expr import consing
from polyax_kernels.ir.graph import KernelNode
from polyax_kernels.plan.plan import CallStep, KernelStep
from support.calls import calls

RNG = np.random.default_rng(1)
X = RNG.standard_normal((6, 5)).astype("f4")
Y = RNG.standard_normal((6, 5)).astype("f4")


def kernels(fun, *args) -> int:
    plan = planned(NumpyKernelBackend(["instruction"]), traced(fun, args))
    return sum(isinstance(s, (KernelStep, CallStep)) for s in plan.steps)


def reasons(fun, *args) -> list[str]:
    plan = planned(NumpyKernelBackend(["instruction"]), traced(fun, args))
    return [d.reason for d in plan.decisions if d.reason]


def sine_chain(x, steps=10):
    for _ in range(steps):
        x = basis.add(basis.mul(0.5, x), basis.mul(0.1, elementwise.sin(x)))
    return x


def test_ten_sine_steps_are_one_kernel() -> None:
    assert kernels(sine_chain, X) == 1
    assert_same(on_kernels(sine_chain, [X]), on_reference(sine_chain, [X]))


def test_producers_go_into_a_reduction() -> None:
    def error(a, b):
        d = basis.sub(a, b)
        return basis.reduce_sum(basis.mul(d, d), (0, 1))

    assert kernels(error, X, Y) == 1
    large = np.ones((600, 500), "f4")
    assert kernels(error, large, large) == 2  # cut into chunks, so that threads share the work


def test_a_reduction_takes_its_consumers_of_equal_shape() -> None:
    assert kernels(lambda x: elementwise.sqrt(basis.div(basis.reduce_sum(x, (1,)), 5.0)), X) == 1


def divided_by_sum(x, axis):
    return basis.div(x, basis.broadcast_in_dim(basis.reduce_sum(x, (axis,)), x.aval.shape, (1 - axis,)))


def test_a_reduction_of_rows_is_computed_before_the_loop_over_the_row() -> None:
    rows = lambda x: divided_by_sum(x, 1)
    assert kernels(rows, X) == 1
    assert_same(on_kernels(rows, [X]), on_reference(rows, [X]))


def test_a_reduction_is_not_computed_for_each_reader() -> None:
    columns = lambda x: divided_by_sum(x, 0)
    assert kernels(columns, X) == 2
    assert "its elements would be computed 6 times" in reasons(columns, X)


def test_a_large_reduction_to_few_elements_keeps_its_kernel() -> None:
    def normalised(x):
        return basis.div(x, basis.broadcast_in_dim(basis.reduce_sum(x, (0, 1)), x.aval.shape, ()))

    assert kernels(normalised, X) == 1
    assert kernels(normalised, np.ones((100, 100), "f4")) == 2


def test_variance_is_one_kernel() -> None:
    def variance(x):
        mean = basis.div(basis.reduce_sum(x, (1,)), 5.0)
        centred = basis.sub(x, basis.broadcast_in_dim(mean, x.aval.shape, (0,)))
        return basis.reduce_sum(basis.mul(centred, centred), (1,))

    assert kernels(variance, X) == 1
    assert_same(on_kernels(variance, [X]), on_reference(variance, [X]))


def test_no_reduction_inside_a_reduction() -> None:
    def nested(x):
        return reduce.reduce_max(basis.reduce_sum(x, (1,)), (0,))

    assert kernels(nested, X) == 2
    assert "a reduction would run inside a reduction" in reasons(nested, X)


def test_no_large_reduction_inside_one_that_all_rows_share() -> None:
    def shared(x):
        return basis.add(x[:, 0], reduce.reduce_max(basis.reduce_sum(x, (0,)), (0,)))

    wide = RNG.standard_normal((200, 64)).astype("f4")
    assert kernels(shared, wide) == 2
    assert "a reduction would run inside a reduction" in reasons(shared, wide)
    assert kernels(shared, X) == 1, "a few elements are folded by each thread"


def test_cheap_producers_are_duplicated_and_expensive_ones_are_not() -> None:
    def cheap(x):
        y = basis.add(x, 1.0)
        return [basis.reduce_sum(y, (0,)), elementwise.sin(y)]

    def expensive(x):
        y = elementwise.exp(x)
        return [basis.reduce_sum(y, (0,)), elementwise.sin(y)]

    assert kernels(cheap, X) == 2
    assert kernels(expensive, X) == 3
    assert "it is expensive, and 2 kernels would compute it" in reasons(expensive, X)


def test_duplicates_read_less_than_what_they_save() -> None:
    def reduced(x, y, axes):
        total = basis.add(x, y)
        return [basis.reduce_sum(total, axis) for axis in axes]

    two = lambda x, y: reduced(x, y, [(0,), (1,)])
    three = lambda x, y: reduced(x, y, [(0,), (1,), (0, 1)])
    assert kernels(two, X, Y) == 2
    assert kernels(three, X, Y) == 4
    assert "720 bytes would be moved instead of 720" in reasons(three, X, Y)


def test_what_only_moves_elements_is_no_kernel_if_that_moves_as_much() -> None:
    def three(x, y):
        columns = [
            slicing.slice(moved, (0, n), (3, n + 1)) for n in range(3) for moved in [slicing.slice(x, (0, 0), (3, 5))]
        ]
        return [reduce.reduce_max(c, (0, 1)) for c in columns]

    assert kernels(three, X, Y) == 3


def test_results_of_the_program_stay_in_memory() -> None:
    def f(x):
        y = elementwise.sin(x)
        return [y, basis.add(y, 1.0)]

    assert kernels(f, X) == 2
    assert reasons(f, X) == ["it is a result of the program"]


def test_shifted_reads_of_something_expensive() -> None:
    def differences(x):
        y = elementwise.sin(x)
        return basis.sub(slicing.slice(y, (1, 0), (6, 5)), slicing.slice(y, (0, 0), (5, 5)))

    assert kernels(differences, X) == 2
    assert "it is expensive, and 2 places of it are needed" in reasons(differences, X)
    assert_same(on_kernels(differences, [X]), on_reference(differences, [X]))


def test_slices_of_what_is_stored_anyway_are_no_kernels() -> None:
    def rolled(x):
        y = elementwise.sin(x)
        return joining.concatenate([slicing.slice(y, (2, 0), (6, 5)), slicing.slice(y, (0, 0), (2, 5))], 0)

    assert kernels(rolled, X) == 2
    assert_same(on_kernels(rolled, [X]), on_reference(rolled, [X]))


@pytest.mark.parametrize("stop, count, why", [(6, 1, []), (2, 2, ["its elements would be computed 6 times"])])
def test_most_of_something_expensive_is_computed_where_it_is_padded(stop: int, count: int, why: list[str]) -> None:
    """But not all of it for a small part."""

    def part(x):
        y = slicing.slice(elementwise.sin(x), (1, 0), (stop, 5))
        return slicing.pad(y, 0.0, ((0, 7 - stop, 0), (0, 0, 0)))

    assert kernels(part, X) == count
    assert reasons(part, X) == why
    assert_same(on_kernels(part, [X]), on_reference(part, [X]))


def test_nothing_expensive_goes_into_a_product() -> None:
    def f(x, y):
        return contract.dot(elementwise.sin(x), basis.transpose(y, (1, 0)))

    assert kernels(f, X, Y) == 2


def test_an_update_does_not_take_in_readers_of_its_target() -> None:
    def f(x):
        y = basis.add(x, 1.0)
        part = basis.mul(index.dynamic_slice(y, (0, 0), (2, 5)), 10.0)
        return index.dynamic_update_slice(y, part, (3, 0))

    assert_same(on_kernels(f, [X]), on_reference(f, [X]))
    assert any("in place" in r for r in reasons(f, X))


def test_long_chains_are_cut_in_linear_time() -> None:
    backend = NumpyKernelBackend()

    def cut(length: int) -> None:
        with consing():
            graph = backend.graph(traced(lambda x: sine_chain(x, length // 4), [X]))
        assert all(node.weight <= backend.limits.kernel_nodes for node in graph.nodes if isinstance(node, KernelNode))
        assert len(graph.nodes) < length / 20

    cut(100)  # what happens once
    assert calls(lambda: cut(5_000)) < 11 * calls(lambda: cut(500))


def test_kernels_of_many_places_are_written_in_linear_time() -> None:
    def shifted(x, times):
        for _ in range(times):
            x = slicing.pad(slicing.slice(basis.add(x, 0.5), (1, 0), (6, 5)), 0.0, ((0, 1, 0), (0, 0, 0)))
        return x

    def compile_chain(times: int) -> None:
        assert kernels(lambda x: shifted(x, times), X) == 1

    compile_chain(5)
    assert calls(lambda: compile_chain(40)) < 2.5 * calls(lambda: compile_chain(20))
    assert_same(on_kernels(lambda x: shifted(x, 4), [X]), on_reference(lambda x: shifted(x, 4), [X]))


def test_operand_limit() -> None:
    arrays = [np.full(3, n, "f4") for n in range(200)]

    def total(*xs):
        result = xs[0]
        for x in xs[1:]:
            result = basis.add(result, x)
        return result

    backend = NumpyKernelBackend()
    plan = planned(backend, traced(total, arrays))
    assert all(len(s.operands) <= backend.limits.operands for s in plan.steps)
    assert len(plan.steps) < 8
    assert_same(on_kernels(total, arrays), [np.full(3, sum(range(200)), "f4")])


def scattered(count):
    """Sums of sines at computed places, and of what is as cheap to compute as to read."""
    numbers = scatter.ScatterDimensionNumbers((), (0,), (0,))
    places = np.arange(count, dtype="i4")[:, None] % 5

    def sines(zeros, x):
        return scatter.scatter_add(zeros, places, elementwise.sin(elementwise.exp(x)), numbers, mode="clip")

    def doubled(zeros, x):
        return scatter.scatter_add(zeros, places, basis.mul(x, 2.0), numbers, mode="clip")

    return sines, doubled, [np.zeros(5, "f4"), np.linspace(0, 1, count, dtype="f4")]


def test_what_is_expensive_is_not_computed_one_after_the_other() -> None:
    """A scatter goes from element to element on one thread; vectors and threads compute what it reads."""
    sines, doubled, args = scattered(200)
    assert kernels(sines, *args) == 2 and kernels(doubled, *args) == 1
    assert any("one element after the other" in reason for reason in reasons(sines, *args))
    assert_same(on_kernels(sines, args), on_reference(sines, args))


def test_few_elements_are_computed_where_they_are_scattered() -> None:
    sines, _, args = scattered(10)
    assert kernels(sines, *args) == 1


def random_program(seed: int, size: int = 30):
    """A program of so many operations on arrays of shape (6, 5), chosen by ``seed``."""

    def program(x, y):
        rng = np.random.default_rng(seed)
        values = [x, y]
        steps = (
            lambda a, b: basis.add(a, b),
            lambda a, b: basis.mul(a, b),
            lambda a, b: elementwise.sin(a),
            lambda a, b: elementwise.max(a, b),
            lambda a, b: basis.broadcast_in_dim(basis.reduce_sum(basis.mul(a, 0.1), (0,)), (6, 5), (1,)),
            lambda a, b: basis.broadcast_in_dim(reduce.reduce_max(a, (1,)), (6, 5), (0,)),
            lambda a, b: basis.reshape(basis.transpose(a, (1, 0)), (6, 5)),
            lambda a, b: joining.concatenate([slicing.slice(a, (2, 0), (6, 5)), slicing.slice(b, (0, 0), (2, 5))], 0),
            lambda a, b: slicing.pad(a, 1.0, ((1, -1, 0), (-1, 1, 0))),
            lambda a, b: index.dynamic_update_slice(a, slicing.slice(b, (0, 0), (2, 2)), (1, 1)),
            lambda a, b: elementwise.tanh(contract.dot(a, contract.dot(basis.transpose(b, (1, 0)), a))),
        )
        for _ in range(size):
            a, b = (values[rng.integers(len(values))] for _ in range(2))
            values.append(steps[rng.integers(len(steps))](a, b))
        return values[-3:]

    return program


@pytest.mark.parametrize("seed", range(12))
def test_fused_equals_unfused(seed: int) -> None:
    program = random_program(seed)
    args = [np.tanh(X), np.tanh(Y)]
    want = on_reference(program, args)
    for got in (on_kernels(program, args), on_kernels(program, args, fused=False)):
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("seed", [100, 101, 102])
def test_fused_programs_on_the_cpu(seed: int) -> None:
    backends = pytest.importorskip("polyax_cpu.backend")
    program = random_program(seed)
    args = [np.tanh(X), np.tanh(Y)]
    closed = traced(program, args)
    backend = backends.CpuBackend()
    for g, w in zip(
        launched(backend, compiled(backend, closed), closed, args), on_reference(program, args), strict=True
    ):
        np.testing.assert_allclose(g, w, rtol=2e-3, atol=2e-3)
