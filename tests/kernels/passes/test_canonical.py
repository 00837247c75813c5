"""Canonical form: merged axes, one key for equal work, the same key in every process."""

from __future__ import annotations

import numpy as np
from kernels.building import F32, axes, elementwise, indices, inputs, one_store

from polyax_kernels.emit.numpy import run
from polyax_kernels.emit.schedule import choose
from polyax_kernels.ir.expr import Axis, consing, const, fold, index, load, op, postorder
from polyax_kernels.ir.kernel import Kernel, Operand, Schedule, Stage, Store, kernel_roots
from polyax_kernels.ir.keys import structural_key
from polyax_kernels.ir.limits import Limits
from polyax_kernels.passes.canonical import canonical, collapse
from support.process import output


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, F32)


def sum_of(shape: tuple[int, ...], reduced: tuple[int, ...]) -> Kernel:
    nest = axes(*shape)
    over = tuple(nest[d] for d in reduced)
    total = fold("add", over, (const(0, F32),), (load(0, F32, indices(nest)),))
    return one_store(tuple(a for a in nest if a not in over), total, [zeros(*shape)])


def extents(kernel: Kernel) -> list[int]:
    return [a.extent for a in kernel.grid if isinstance(a.extent, int)]


def fold_extents(kernel: Kernel) -> list[int]:
    return [a.extent for a in kernel.stages[0].stores[0].value.attr.axes]


def test_elementwise_kernels_have_one_loop() -> None:
    with consing():
        assert extents(collapse(elementwise(lambda x, y: x * y, zeros(3, 4, 5), zeros(3, 4, 5)))) == [60]


def test_broadcasts_keep_the_loops_that_they_need() -> None:
    with consing():
        i, j, k = axes(3, 4, 5)
        value = load(0, F32, indices((i, j, k))) + load(1, F32, (index(k),))
        assert extents(collapse(one_store((i, j, k), value, [zeros(3, 4, 5), zeros(5)]))) == [12, 5]


def test_reductions_merge_what_is_contiguous() -> None:
    with consing():
        for reduced, grid, over in [((1, 2), [3], [20]), ((0, 1), [5], [12]), ((2,), [12], [5]), ((0,), [20], [3])]:
            kernel = collapse(sum_of((3, 4, 5), reduced))
            assert (extents(kernel), fold_extents(kernel)) == (grid, over)
        kernel = collapse(sum_of((3, 4, 5), (0, 2)))
        assert (extents(kernel), fold_extents(kernel)) == ([4], [3, 5])


def test_one_key_for_all_sizes() -> None:
    with consing():
        keys = set()
        for shape in ((3,), (7,), (2, 5), (2, 3, 4)):
            kernel, params = canonical(elementwise(lambda x: op("sin", x), zeros(*shape)))
            assert params[0] == np.prod(shape)
            keys.add(structural_key(kernel))
        assert len(keys) == 1


def test_one_key_for_all_shapes_of_a_pattern() -> None:
    with consing():
        for reduced in ((0,), (1,), (0, 2)):
            made = [canonical(sum_of(shape, reduced)) for shape in ((3, 4, 5), (6, 7, 8), (30, 20, 9))]
            assert len({structural_key(kernel) for kernel, _ in made}) == 1
            assert len({params for _, params in made}) == 3

        def scaled(m: int, n: int, start: int) -> Kernel:
            i, j = axes(m, n)
            value = load(0, F32, indices((i, j))) * load(1, F32, (index(j) + start,))
            return one_store((i, j), value, [zeros(m, n), zeros(n + start)])

        assert len({structural_key(canonical(scaled(*s))[0]) for s in ((3, 4, 2), (5, 6, 7))}) == 1


def test_keys_differ_where_code_differs() -> None:
    with consing():
        made = [
            elementwise(lambda x: x + 1.0, zeros(4)),
            elementwise(lambda x: x + 2.0, zeros(4)),
            elementwise(lambda x: x - 1.0, zeros(4)),
            elementwise(lambda x: x + 1.0, np.zeros(4)),
            elementwise(lambda x, y: x + y, zeros(4), zeros(4)),
            elementwise(lambda x, y: y + x, zeros(4), zeros(4)),
            sum_of((4, 5), (0,)),
            sum_of((4, 5), (1,)),
        ]
        assert len({structural_key(canonical(k)[0]) for k in made}) == len(made)


def test_names_of_axes_and_tables_do_not_matter() -> None:
    def build(name: str) -> str:
        with consing():
            i, k = Axis(4, name), Axis(5, name + "k")
            total = fold("add", (k,), (const(0, F32),), (load(0, F32, (index(i), index(k))),))
            operands = (*inputs([zeros(4, 5)]), Operand((4,), F32, "out"))
            return structural_key(Kernel((i,), (Stage((), (Store(1, (index(i),), total),)),), operands))

    assert build("i") == build("row")


KEY_IN_A_PROCESS = """
import numpy as np
from polyax_kernels.ir.keys import structural_key
from polyax_kernels.passes.canonical import canonical
from polyax_kernels.ir.expr import Axis, const, consing, fold, index, load, op
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store
f32 = np.dtype("float32")
with consing():
    i, k = Axis(4), Axis(5)
    total = fold("add", (k,), (const(0, f32),), (load(0, f32, (index(i), index(k))),))
    store = Store(1, (index(i),), op("exp", total))
    operands = (Operand((4, 5), f32, "in"), Operand((4,), f32, "out"))
    print(structural_key(canonical(Kernel((i,), (Stage((), (store,)),), operands))[0]))
"""


def test_keys_are_stable_across_processes() -> None:
    runs = [output(KEY_IN_A_PROCESS) for _ in range(2)]
    assert runs[0] == runs[1] and len(runs[0]) == 64


def test_schedules() -> None:
    with consing():
        assert choose(collapse(sum_of((100, 9999), (0,)))) == Schedule(parallel=1, lanes=Limits().lanes)
        assert choose(collapse(sum_of((100, 10), (0,)))).lanes == 10
        assert choose(collapse(sum_of((100, 200), (1,)))).lanes == 1
        assert choose(collapse(sum_of((100, 200), (0, 1)))).parallel == 0


def test_axes_are_split_where_divisions_cut_them() -> None:
    """A transpose of a flattened matrix walks two axes, without divisions in its loops."""
    x = np.arange(12 * 20, dtype=F32).reshape(12, 20)
    with consing():
        (n,) = axes(x.size)
        at = index(n)
        whole = one_store((n,), load(0, F32, (at % 12, at // 12)), [x])
        kernel, params = canonical(whole)
        assert extents(collapse(whole)) == [20, 12]
        assert not any(x.attr in ("floordiv", "mod") for r in kernel_roots(kernel) for x in postorder(r))
        out = np.zeros(x.size, F32)
        run(kernel, [x, out], params)
        np.testing.assert_array_equal(out, x.T.ravel())


def test_short_inner_axes_are_not_worth_a_loop() -> None:
    with consing():
        (n,) = axes(40)
        at = index(n)
        assert extents(collapse(one_store((n,), load(0, F32, (at % 2, at // 2)), [zeros(2, 20)]))) == [40]
