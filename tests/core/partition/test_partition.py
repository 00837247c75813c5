"""What programs become on meshes: how values are cut, what devices exchange, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core.partition.checking import BOTH, COLUMNS, MESH, NOT, RNG, ROWS, V, W, X, checked, moves

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.control.spmd import axes_bound, manual, shard_map_p
from polyax.ir.aval import aval_of
from polyax.ir.jaxpr import walk_eqns
from polyax.ir.primitive import Primitive
from polyax.meshes.axes import AbstractMesh
from polyax.meshes.factors import factors
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import UNCONSTRAINED, PartitionSpec
from polyax.ops.constraint import constrain
from polyax.partition.reshard import way
from polyax.trace.recording import trace_to_jaxpr
from support import process
from support.meshed import partitioned


@pytest.fixture(autouse=True)
def on_the_reference() -> Iterator[None]:
    with polyax.default_device(polyax.devices("reference")[0]):
        yield


def test_each_dimension_of_a_value_may_be_told_by_somebody_else() -> None:
    mesh = AbstractMesh((2, 2), ("x", "y"))
    told = lambda x, *spec: constrain(x, NamedSharding(mesh, PartitionSpec(*spec)))
    found = checked(lambda x: told(x + 1, "y", UNCONSTRAINED), [X], [NOT], [(None, ())])
    assert found.outs == ((("y",), ()),)
    found = checked(lambda x: told(x + 1, "y", "x"), [X], [NOT], [(("x",), None)])
    assert found.outs == ((("x",), ()),)


def test_rows_times_columns_moves_nothing() -> None:
    found = checked(lambda x, w: jnp.sin(x) @ w + 1, [X, W], [ROWS, COLUMNS])
    assert (found.outs, moves(found)) == ((BOTH,), [])


def test_what_nobody_reads_does_not_move() -> None:
    found = checked(lambda x: (x.sum() + 1, jnp.sin(x))[1], [X], [ROWS])
    assert (found.outs, moves(found)) == ((ROWS,), [])


def test_two_layers_are_summed_once() -> None:
    cuts = [ROWS, COLUMNS, (("y",), ())]
    found = checked(lambda x, w, v: jnp.tanh(x @ w) @ v, [X, W, V], cuts)
    assert (found.outs, moves(found)) == ((ROWS,), [("psum", ("y",), 128)])


def test_sums_that_are_wanted_cut_are_scattered() -> None:
    cuts = [ROWS, None, (("y",), ())]
    found = checked(lambda x, w, v: jnp.tanh(x @ w) @ v, [X, W, V], cuts, [BOTH])
    assert found.ins[1] == COLUMNS, "an open argument is cut as what it is used for"
    assert moves(found) == [("reduce_scatter", ("y",), 64)]


def test_sums_over_two_axes_that_are_wanted_cut_along_one() -> None:
    cuts = [((), ("x", "y")), (("x", "y"), ())]
    x, w = (RNG.normal(size=s).astype(np.float32) for s in ((8, 256), (256, 12)))
    found = checked(lambda x, w: x @ w, [x, w], cuts, [ROWS])
    assert moves(found) == [("reduce_scatter", ("x",), 192), ("psum", ("y",), 192)]


def test_sums_over_several_axes_are_one_exchange() -> None:
    assert moves(checked(lambda x: x.sum(), [X], [BOTH])) == [("psum", ("x", "y"), 6)]


@pytest.mark.parametrize(
    ("before", "after", "steps"),
    [
        (NOT, BOTH, []),
        (ROWS, NOT, [("all_gather", ("x",), 64)]),
        (ROWS, ((), ("x",)), [("all_to_all", ("x",), 32)]),
        (ROWS, (("x", "y"), ()), []),
        ((("x", "y"), ()), BOTH, [("all_to_all", ("y",), 16)]),
        ((("x", "y"), ()), (("y", "x"), ()), [("all_gather", ("y",), 32), ("all_gather", ("x",), 64)]),
    ],
)
def test_ways_from_cuts_to_cuts(before: Any, after: Any, steps: Any) -> None:
    assert moves(checked(lambda x: x, [X], [before], [after])) == steps


def test_slices_come_before_exchanges() -> None:
    steps = way((8, 8), 4, (("x",), ()), ((), ("y",)), MESH, ()).steps
    assert [s.kind for s in steps] == ["slice", "all_gather"]


def test_dimensions_that_axes_do_not_divide_are_not_cut() -> None:
    x = np.arange(9, dtype=np.float32)
    assert checked(lambda x, y: x + y[:1], [x, X[0]], [None, (("x",),)]).ins[0] == ((),)


def test_constraints_hold_where_they_stand() -> None:
    mesh = AbstractMesh((2, 2), ("x", "y"))

    def fun(x: Any) -> Any:
        y = constrain(x * 2, NamedSharding(mesh, PartitionSpec(None, "x")))
        return constrain(y + 1, NamedSharding(mesh, PartitionSpec(UNCONSTRAINED, "x")))

    found = checked(fun, [X], [ROWS])
    assert found.outs == (((), ("x",)),)
    assert moves(found) == [("all_to_all", ("x",), 32)]
    assert found.moves[0].reason == "a constraint says P(None, 'x'); the value is P('x', None)"


def test_reasons_name_dimensions_and_operands() -> None:
    found = checked(lambda x, w: x @ w, [X, W[:, :1]], [((), ("y",)), NOT], [NOT])
    assert "dot_general" in found.moves[0].reason
    assert __file__ in found.moves[0].source


# --- programs within programs


def test_loops_carry_what_is_cut_alike() -> None:
    def fun(c: Any, xs: Any) -> Any:
        return lax.scan(lambda c, x: (jnp.tanh(c + x), (c * x).sum()), c, xs)

    found = checked(fun, [X[0], X], [None, ((), ("x",))])
    assert found.ins[0] == (("x",),)
    assert moves(found) == [("psum", ("x",), 4 * 8)], "one in each of eight steps"


def test_steps_are_not_cut() -> None:
    found = checked(lambda xs: lax.scan(lambda c, x: (c + x, c), jnp.zeros(4), xs), [X], [ROWS])
    assert moves(found) == [("all_gather", ("x",), 64)]
    assert found.moves[0].reason.startswith("the program in scan has its operand 1 as P(None, None)")


def test_what_is_wanted_of_a_loop_goes_into_it() -> None:
    found = checked(lambda xs: lax.scan(lambda c, x: (c, jnp.sin(x)), 0.0, xs)[1], [X], [None], [((), ("x",))])
    assert (found.ins, moves(found)) == ((((), ("x",)),), [])


def test_carries_are_cut_as_what_steps_give() -> None:
    found = checked(lambda xs: lax.scan(lambda c, x: (x, c), jnp.zeros(4), xs), [X], [((), ("x",))])
    assert (found.outs, moves(found)) == (((("x",),), ((), ("x",))), [])


def test_loops_of_unknown_length() -> None:
    def fun(x: Any) -> Any:
        return lax.while_loop(lambda c: c.sum() < 100, lambda c: c * c + 1, x)

    found = checked(fun, [X], [ROWS])
    assert found.outs == (ROWS,)


def test_branches_agree() -> None:
    def fun(i: Any, x: Any) -> Any:
        return lax.switch(i, [lambda x: x @ x.T, lambda x: jnp.zeros((8, 8), np.float32)], x)

    found = checked(fun, [np.int32(0), X], [None, ROWS])
    assert found.outs == (ROWS,)


def test_calls_dissolve_and_what_is_computed_again_stays_apart() -> None:
    @polyax.custom_vjp
    def own(x: Any) -> Any:
        return jnp.sin(x)

    own.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (2 * ct * jnp.cos(x),))
    fun = polyax.grad(lambda x: polyax.checkpoint(lambda x: polyax.jit(own)(jnp.sin(x)))(x).sum())
    found = checked(fun, [X], [ROWS])
    assert (found.outs, moves(found)) == ((ROWS,), [])
    names = {e.primitive.name for e in walk_eqns(found.program.jaxpr)}
    assert "remat2" in names and "jit" not in names


def test_random_bits_are_those_of_one_device() -> None:
    found = checked(lambda k: polyax.random.normal(k, (8, 4)), [polyax.random.PRNGKey(0)], [None], [BOTH])
    assert not found.moves


def test_long_programs_take_linear_time() -> None:
    def chain(n: int) -> int:
        def fun(x: Any) -> Any:
            for _ in range(n):
                x = jnp.sin(x) + x
            return x

        return len(partitioned(fun, [X], MESH, [None], [BOTH]).program.eqns)

    assert chain(2000) == 2 * 2000


# --- regions of other programs' makers


def region(fun: Callable[..., Any], x: Any, spec: Any, out_spec: Any, names: set[Any]) -> Any:
    """``fun`` of blocks, along these axes of the mesh."""
    mesh, sizes = AbstractMesh((2, 2), ("x", "y")), dict(MESH)
    shape = [n // np.prod([sizes[a] for a in c], dtype=int) for n, c in zip(x.shape, spec, strict=True)]
    with axes_bound(manual(mesh, frozenset(names))):
        program = trace_to_jaxpr(lambda x: [fun(x)], [aval_of(x).update(shape=tuple(map(int, shape)))])
    params = {"jaxpr": program, "mesh": mesh, "manual_axes": frozenset(names), "check_vma": False, "name": "f"}
    return shard_map_p.bind(x, in_specs=(spec,), out_specs=(out_spec,), **params)[0]


def test_regions_stand_where_they_are_called() -> None:
    def fun(x: Any) -> Any:
        return region(lambda b: lax.psum(jnp.sin(b), "x") + lax.axis_index("y"), 2 * x, BOTH, COLUMNS, {"x", "y"}) + 1

    found = checked(polyax.jit(fun), [X], [ROWS])
    assert (found.outs, moves(found)) == ((COLUMNS,), [])
    assert "shard_map" not in {e.primitive.name for e in walk_eqns(found.program.jaxpr)}


def test_axes_that_a_region_leaves_free_are_the_partitioners() -> None:
    def fun(x: Any) -> Any:
        return region(lambda b: lax.psum(b @ jnp.ones((4, 4)), "x"), 2 * x, ROWS, NOT, {"x"}) + 1

    found = checked(polyax.jit(fun), [X], [(("x", "y"), ())])
    assert (found.outs, moves(found)) == (((("y",), ()),), [])


def test_what_a_region_has_whole_is_whole_in_it() -> None:
    def fun(x: Any) -> Any:
        return region(lambda b: lax.psum(b, "x"), x, NOT, NOT, {"x"})

    assert moves(checked(polyax.jit(fun), [X], [ROWS])) == [("all_gather", ("x",), 64)]


def test_what_is_cut_otherwise_around_a_region_is_whole_in_it() -> None:
    """It is cut along an axis that is the partitioner's, where the region cuts it along its own."""

    def fun(x: Any) -> Any:
        return region(lambda b: b - lax.pmax(b, "x"), x, ROWS, ROWS, {"x"})

    found = checked(polyax.jit(fun), [X], [(("y",), ())])
    assert [(m.collective, m.axes) for m in found.moves] == [("all_gather", ("y",))]


def test_regions_within_loops() -> None:
    def step(c: Any, _: Any) -> Any:
        return region(lambda b: b + lax.pmean(b, "x"), c, ROWS, ROWS, {"x"}), ()

    found = checked(polyax.jit(lambda x: lax.scan(step, x, None, length=3)[0]), [X], [BOTH])
    assert (found.outs, moves(found)) == ((BOTH,), [])


def test_regions_along_other_axes_run_anywhere() -> None:
    def fun(x: Any) -> Any:
        return polyax.pmap(lambda b: b * lax.psum(b, "i"), "i", axis_size=1)(x)

    found = checked(polyax.jit(fun), [X[:1]], [COLUMNS])
    assert (found.outs, moves(found)) == ((COLUMNS,), [])


# --- effects


def test_ordered_effects_are_those_of_the_first_device() -> None:
    def fun(x: Any) -> Any:
        polyax.debug.print("{}", x, ordered=True)
        return x

    found = partitioned(fun, [X], MESH, [ROWS])
    outer = {e.primitive.name for e in found.program.eqns}
    assert "debug_print" not in outer and "cond" in outer
    assert [e.ordered for e in found.program.effects] == [True]


def test_ordered_effects_in_regions_are_refused() -> None:
    def fun(x: Any) -> Any:
        return region(lambda b: polyax.debug.print("{}", b, ordered=True) or b, x, ROWS, ROWS, {"x"})

    with pytest.raises(ValueError, match=r"ordered effects are not supported for more than 1 device.* 2 devices run"):
        partitioned(fun, [X], MESH, [ROWS])


def test_ordered_effects_in_regions_of_one_device() -> None:
    mesh = AbstractMesh((1, 4), ("x", "y"))

    def body(b: Any) -> Any:
        polyax.debug.print("{}", b, ordered=True)
        return b

    one = polyax.shard_map(
        body, mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec("x"), axis_names={"x"}, check_vma=False
    )
    found = partitioned(one, [X], (("x", 1), ("y", 4)), [NOT])
    assert [e.ordered for e in found.program.effects] == [True]


def test_what_is_called_once_is_told_to_all_devices() -> None:
    found = partitioned(
        lambda x: polyax.pure_callback(np.sin, polyax.ShapeDtypeStruct((8, 4), x.dtype), x), [X], MESH, [NOT]
    )
    assert moves(found) == [("all_gather", ("x",), X.nbytes), ("all_gather", ("y",), X.nbytes)]
    assert {m.reason for m in found.moves} == {
        "the first device, where pure_callback runs, tells the others its results"
    }


def test_callbacks_on_devices() -> None:
    process.cases(Path(__file__).with_name("callback_cases.py"), POLYAX_DEVICE="cpu", POLYAX_NUM_CPU_DEVICES="4")


def test_rules_that_do_not_fit_are_told() -> None:
    wrong = Primitive("test_wrong_factors")
    wrong.abstract_eval = lambda x: [x.update(shape=x.shape[::-1])]
    wrong.factors = lambda x: factors([[0, 1]], [[0, 1]])
    with pytest.raises(TypeError, match=r"the rule 'factors' of test_wrong_factors doesn't fit .*\(4, 4\)"):
        partitioned(lambda x: wrong.bind1(x), [X], MESH, [ROWS])
