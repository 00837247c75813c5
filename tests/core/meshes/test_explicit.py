"""Sharding in types: what operations, loops and transformations make of it, mostly of programs that don't run."""

import re
from pathlib import Path

import pytest

import polyax as px
import polyax.numpy as jnp
from polyax import lax
from polyax.errors import ShardingTypeError
from polyax.sharding import (
    AbstractMesh,
    AxisType,
    NamedSharding,
    auto_axes,
    explicit_axes,
    get_abstract_mesh,
    use_abstract_mesh,
)
from polyax.sharding import PartitionSpec as P
from support import process

MESH = AbstractMesh((4, 2), ("x", "y"), (AxisType.Explicit,) * 2)


def arg(shape, *spec, mesh=MESH):
    return px.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh, P(*spec)))


def types(fun, *args):
    """The texts of the types of the results, where the mesh of the arguments is in force, unless another one is."""
    around, told = get_abstract_mesh(), [a.sharding.mesh for a in args if getattr(a, "sharding", None) is not None]
    with use_abstract_mesh(told[0] if told and around.empty else around):
        return " ".join(str(a)[str(a).index("[") :] for a in px.make_jaxpr(fun)(*args).out_avals)


ROWS, COLUMNS, WHOLE, BOTH = arg((8, 8), "x"), arg((8, 8), None, "x"), arg((8, 8)), arg((8, 4), "x", "y")
VECTOR = arg((8,), "x")
HALF = AbstractMesh((4, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
WHOLE_VALUE = jnp.ones((8, 8))
HALF_ROWS = arg((8, 8), "x", mesh=HALF)

DERIVED = [
    (lambda a, b: a + b, (ROWS, WHOLE), "[8@x,8]"),
    (lambda a: a + 1, (ROWS,), "[8@x,8]"),
    (lambda a, b: a[:, None] * b[None], (VECTOR, arg((8,), "y")), "[8@x,8@y]"),
    (lambda a, b: a @ b, (WHOLE, ROWS), "[8,8]"),
    (lambda a, b: a @ b, (ROWS, WHOLE), "[8@x,8]"),
    (lambda a: (a.sum(0), a.sum(1), a.sum()), (BOTH,), "[4@y] [8@x] []"),
    (lambda a: (jnp.argmax(a, 1), a.mean(0), a.max(1)), (arg((8, 8), "x"),), "[8@x] [8] [8@x]"),
    (lambda a: a.T, (BOTH,), "[4@y,8@x]"),
    (lambda a: a.reshape(32), (BOTH,), "[32@(x,y)]"),
    (lambda a: a.reshape(4, 2, 4), (arg((8, 4), "x"),), "[4@x,2,4]"),
    (lambda a: a.reshape(8, 2, 2), (BOTH,), "[8@x,2@y,2]"),
    (lambda a: a.reshape(8, 4), (arg((8, 2, 2), "x"),), "[8@x,4]"),
    (lambda a: a.reshape(8, 1, 4), (BOTH,), "[8@x,1,4@y]"),
    (lambda a: lax.slice_in_dim(a, 0, 4, axis=0), (ROWS,), "[4@x,8]"),
    (lambda a: (jnp.concatenate([a, a], 0), jnp.concatenate([a, a], 1)), (ROWS,), "[16@x,8] [8@x,16]"),
    (lambda a: jnp.pad(a, ((0, 0), (1, 1))), (ROWS,), "[8@x,10]"),
    (lambda a: jnp.sort(a, 1), (ROWS,), "[8@x,8]"),
    (lambda a: jnp.where(a > 0, a, 0.0), (ROWS,), "[8@x,8]"),
    (lambda a: px.nn.softmax(a, 0), (ROWS,), "[8@x,8]"),
    (lambda a: jnp.broadcast_to(a, (3, 8, 8)), (ROWS,), "[3,8@x,8]"),
    (lambda a: jnp.fft.fft(a).real, (ROWS,), "[8@x,8]"),
    (lambda x, k: lax.conv(x, k, (1, 1), "SAME"), (arg((8, 3, 5, 5), "x"), arg((4, 3, 2, 2))), "[8@x,4,5,5]"),
    (lambda a: px.nn.relu(a), (ROWS,), "[8@x,8]"),
    (lambda a: px.jit(lambda x: x * 2)(a), (arg((8, 4), ("x", "y")),), "[8@(x,y),4]"),
    (lambda a, v: lax.scan(lambda c, x: (c * x, x), v, a), (COLUMNS, VECTOR), "[8@x] [8,8@x]"),
    (lambda v: lax.fori_loop(0, 3, lambda i, c: c * 2, v), (VECTOR,), "[8@x]"),
    (lambda v: lax.cond(True, lambda x: x, lambda x: x * 2, v), (VECTOR,), "[8@x]"),
    (px.vmap(lambda x, y: x @ y, in_axes=(0, None)), (ROWS, WHOLE), "[8@x,8]"),
    (px.vmap(lambda x: lax.scan(lambda c, y: (c + y, c), 0.0, x)), (ROWS,), "[8@x] [8@x,8]"),
    (px.vmap(px.grad(lambda x: x @ x)), (ROWS,), "[8@x,8]"),
    (lambda a: px.reshard(a, P("y", "x")), (ROWS,), "[8@y,8@x]"),
    (lambda a: a[:, jnp.array([1, 2])], (ROWS,), "[8@x,2]"),
    (lambda a: jnp.take_along_axis(a, jnp.zeros((8, 1), int), 1), (ROWS,), "[8@x,1]"),
    (lambda a: a.at[:, jnp.array([0, 3])].add(1.0), (ROWS,), "[8@x,8]"),
    (lambda a: lax.dynamic_slice(a, (1, 0), (4, 8)), (ROWS,), "[4@x,8]"),
    (lambda a: lax.dynamic_update_slice(a, a[:4], (1, 0)), (ROWS,), "[8@x,8]"),
    (lambda a: (jnp.repeat(a, 2, 0), jnp.tile(a, (1, 2))), (ROWS,), "[16@x,8] [8@x,16]"),
    (lambda a: jnp.fft.fft(a, axis=0).real, (ROWS,), "[8@x,8]"),
    (lambda a: lax.with_sharding_constraint(a, NamedSharding(HALF, P(P.UNCONSTRAINED, None))), (HALF_ROWS,), "[8@x,8]"),
    (px.vmap(lambda r: px.reshard(r, P("y"))), (ROWS,), "[8@x,8@y]"),
    (lambda a: px.vjp(lambda v: px.reshard(v, P("y")), a)[1](px.reshard(a, P("y"))), (ROWS,), "[8@x,8]"),
]


@pytest.mark.parametrize(("fun", "args", "wanted"), DERIVED)
def test_results_are_cut_as_their_operands(fun, args, wanted):
    with px.enable_checks(True):
        assert types(fun, *args) == wanted


AMBIGUOUS = [
    (lambda a, b: a + b, (ROWS, COLUMNS), "add operation with inputs: f32[8@x,8], f32[8,8@x] produces an illegally"),
    (
        lambda a, b: a + b,
        (ROWS, arg((8, 8), "y")),
        "add got incompatible shardings for broadcasting: ('x', None), ('y'",
    ),
    (lambda a, b: a @ b, (COLUMNS, ROWS), "Contracting dimensions are sharded and it is ambiguous"),
    (lambda a, b: a @ b, (ROWS, COLUMNS), "dot_general operation with inputs"),
    (lambda a, b: a @ b, (COLUMNS, arg((8, 8), "y")), "contracting dimensions to have consistent sharding, got ('x',)"),
    (lambda a: a.reshape(3, 8), (arg((8, 3), "x"),), "This reshape is not supported. Please specify the sharding of"),
    (lambda a: a.reshape(64), (COLUMNS,), "Got operand type: float32[8,8@x], of which dimension 1 is cut along 'x'"),
    (lambda a: a.reshape(4, 16), (ROWS,), "This reshape is not supported"),
    (lambda a: jnp.tile(a, (2, 1)), (ROWS,), "This reshape is not supported"),
    (lambda a, b: jnp.concatenate([a, b]), (ROWS, COLUMNS), "Got shardings P('x', None), P(None, 'x') of operands"),
    (lambda a, b: jnp.stack([a, b]), (ROWS, arg((8, 8), "y")), "All operands should have the same sharding"),
    (lambda a: a[0], (ROWS,), "out dim (1) is not divisible by mesh axes (4) with spec (x)"),
    (lambda a: a[jnp.array([1, 2])], (ROWS,), "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec"),
    (lambda a, b: jnp.take(a, b.astype(int), 0), (WHOLE, VECTOR), "indices=ShapedArray(int32[8@x,1])"),
    (lambda a: jnp.diag(a), (ROWS,), "out sharding could not be resolved unambiguously"),
    (lambda a: a.at[jnp.array([1, 2])].set(1.0), (ROWS,), "Use `.at[...].set/add/mul/...(out_sharding=)` to provide"),
    (lambda a: px.ops.segment_sum(a, jnp.arange(8) % 4, 4), (ROWS,), "Use `.at[...].set/add/mul/...(out_sharding=)`"),
    (lambda a: lax.dynamic_index_in_dim(a, 1), (ROWS,), "out dim (1) is not divisible by mesh axes (4) with spec (x)"),
    (lambda a, b: lax.dynamic_update_slice(a, b, (1, 0)), (ROWS, arg((4, 8), "y")), "equal to update sharding, got"),
    (lambda a: jnp.cumsum(a, 0), (ROWS,), "Input should be unsharded over the axis being reduced: cumsum needs"),
    (jnp.linalg.inv, (ROWS,), "Input 0 to lu must be unsharded on non-batch dimensions, but got P('x', None)"),
    (lambda a: jnp.sort(a, 0), (ROWS,), "Arguments to sort must be unsharded over the sorting dimension: sort"),
    (
        lambda a: lax.slice_in_dim(a, 0, 3, axis=0),
        (ROWS,),
        "slicing on sharded dims where out dim (3) is not divisible by mesh axes (4) with spec (x)",
    ),
    (lambda a: lax.pad(a, 0.0, ((0, 1, 0), (0, 0, 0))), (ROWS,), "padding on sharded dims where out dim (9)"),
    (lambda a: a.reshape(2, 4, 8), (ROWS,), "This reshape is not supported. Please specify the sharding of"),
    (
        lambda a, b: jnp.einsum("bij,bjk->bik", a, b),
        (arg((8, 2, 2), "x"), arg((8, 2, 2), "y")),
        "dot_general requires lhs batch dimensions and rhs batch dimensions to have the consistent sharding, got",
    ),
    (
        lambda x, k: lax.conv(x, k, (1, 1), "SAME"),
        (arg((8, 4, 5, 5), None, "x"), arg((4, 4, 2, 2))),
        "Please specify the output sharding: conv_general_dilated sums over features, which are cut along 'x'",
    ),
]


@pytest.mark.parametrize(("fun", "args", "text"), AMBIGUOUS)
def test_what_operands_do_not_tell_is_an_error(fun, args, text):
    with pytest.raises(ShardingTypeError, match=re.escape(text)):
        types(fun, *args)


def test_operands_are_on_the_mesh_in_force():
    elsewhere = arg((8, 8), "z", mesh=AbstractMesh((8,), ("z",), (AxisType.Explicit,)))
    with use_abstract_mesh(MESH), pytest.raises(ValueError, match="For primitive add, context mesh .* aval mesh"):
        types(lambda a, b: a + b, ROWS, elsewhere)


def test_what_is_not_cut_may_lie_anywhere_without_a_mesh_in_force():
    assert types(lambda a, b: jnp.concatenate([a, b]), ROWS, WHOLE) == "[16@x,8]"
    assert types(lambda a, b: lax.dynamic_update_slice(a, b, (0, 0)), ROWS, WHOLE) == "[8@x,8]"


def test_regions_take_arguments_as_types_tell():
    region = lambda spec: px.shard_map(lambda a: a * 2, mesh=MESH, in_specs=spec, out_specs=spec)
    with px.sharding.use_abstract_mesh(MESH):
        assert types(region(P("x")), ROWS) == "[8@x,8]"
        for spec, array in ((P("y"), ROWS), (P(), ROWS), (P("x"), WHOLE)):
            text = r"in_specs passed to shard_map: .* does not match .* which is a of '<lambda>' \(in_specs"
            with pytest.raises(ValueError, match=text):
                types(region(spec), array)


def test_resharding_is_for_explicit_axes():
    mixed = AbstractMesh((4, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    with pytest.raises(ValueError, match="with axis name: y of type: AxisType.Auto, for float32"):
        types(lambda a: px.reshard(a, NamedSharding(mixed, P("x", "y"))), WHOLE)


def test_loops_and_branches_keep_their_types():
    turn = lambda c: px.reshard(c, P("y"))
    for name, fun in {
        "scan body function": lambda v: lax.scan(lambda c, _: (turn(c), None), v, None, length=2)[0],
        "while_loop body function": lambda v: lax.while_loop(lambda c: False, turn, v),
        "cond branches": lambda v: lax.cond(True, lambda x: x, turn, v),
    }.items():
        with pytest.raises(
            TypeError, match=rf"{name}.*must have equal (output )?types(.|\n)*8@y(.|\n)*shardings do not match"
        ):
            types(fun, VECTOR)


def test_what_is_scanned_or_mapped():
    with pytest.raises(ValueError, match=r"0th dimension of all xs should be replicated. Got P\('x', None\)"):
        types(lambda a: lax.scan(lambda c, x: (c, x), 0.0, a)[1], ROWS)
    for other, text in ((arg((8, 8), "y"), "x vs y"), (WHOLE, "x vs None")):
        with pytest.raises(ValueError, match=f"should be sharded the same. Got inconsistent axis specs: {text}"):
            types(px.vmap(lambda x, y: x + y), ROWS, other)
    with pytest.raises(ValueError, match="Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis"):
        types(px.vmap(lambda x: x, spmd_axis_name="y"), ROWS)


def test_cotangents_are_cut_as_their_primals():
    loss = lambda w, x: jnp.sum((x @ w) ** 2)
    weights, batch = arg((4, 2)), arg((8, 4), "x")
    assert types(px.grad(loss, (0, 1)), weights, batch) == "[4,2] [8@x,4]"
    assert types(px.grad(loss, (0, 1)), arg((4, 2), "y"), batch) == "[4@y,2] [8@x,4]"
    assert types(px.grad(lambda w, x: px.jit(px.grad(loss))(w, x).sum()), weights, batch) == "[4,2]"
    deep = lambda w, x: lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=3)[0].sum()
    assert types(px.grad(deep, (0, 1)), arg((4, 4)), batch) == "[4,4] [8@x,4]"
    again = lambda w, x: px.checkpoint(lambda v: jnp.sin(x @ v))(w).sum()
    assert types(px.grad(again), weights, batch) == "[4,2]"


def test_backward_passes_multiply_what_they_have():
    """A product whose summed dimension both operands are cut along is typed; none is told less than it is."""
    backward = px.make_jaxpr(px.grad(lambda x, w: jnp.sin(x @ w).sum(), (0, 1)))(ROWS, arg((8, 4), None, "y"))
    made = [e for e in backward.eqns if e.primitive.name == "dot_general"]
    assert [str(e.outvars[0].aval)[7:] for e in made] == ["[8@x,4@y]", "[4@y,8]", "[8@x,8]"]
    told = [e.params["sharding"] for e in backward.eqns if e.primitive.name == "reshard"]
    assert told and None not in told


def test_shardings_of_the_mesh_outside_within_auto_axes():
    outside = NamedSharding(MESH, P("x", "y"))
    within = lambda fun: types(auto_axes(fun, axes="y", out_sharding=P("x", "y")), BOTH)
    with pytest.raises(ValueError, match=r"can only refer to Auto axes of the mesh. Got spec=P\('x', 'y'\) and mesh="):
        within(lambda x: lax.with_sharding_constraint(x, outside))
    with pytest.raises(
        ValueError, match=r"Context mesh .*Explicit, Auto.* should match the mesh of sharding .* to dot"
    ):
        within(lambda x: jnp.dot(x, x.T, out_sharding=NamedSharding(MESH, P("x"))))
    with pytest.raises(ValueError, match=r"Context mesh .*Explicit, Auto.* should match the mesh of sharding"):
        within(lambda x: x + jnp.zeros((8, 4), out_sharding=outside))
    assert within(lambda x: px.device_put(x, outside) * 2) == "[8@x,4@y]"
    assert within(lambda x: px.jit(lambda y: y * 2, out_shardings=outside)(x)) == "[8@x,4@y]"


def test_results_are_not_placed_along_axes_that_types_leave_out():
    with pytest.raises(ValueError, match=r"passed to dot cannot contain axis names that are of type Auto or Manual"):
        jnp.dot(WHOLE_VALUE, WHOLE_VALUE, out_sharding=NamedSharding(HALF, P("y")))


def test_open_dimensions_need_an_axis_that_is_automatic():
    with pytest.raises(ValueError, match=r"P\('x', UNCONSTRAINED\) cannot contain `P.UNCONSTRAINED` when no mesh axis"):
        NamedSharding(MESH, P("x", P.UNCONSTRAINED))
    assert NamedSharding(HALF, P("x", P.UNCONSTRAINED)).spec[1] is P.UNCONSTRAINED
    assert types(px.vmap(lambda r: px.reshard(r, NamedSharding(MESH, P("y")))), WHOLE) == "[8,8@y]", (
        "of what isn't cut nothing is open"
    )


def test_the_mapped_axis_may_be_named_as_it_is_cut():
    for name in ("x", ("x",)):
        assert types(px.vmap(lambda r: px.reshard(r * 2, P("y")), spmd_axis_name=name), ROWS) == "[8@x,8@y]"
    constrained = px.vmap(lambda r: lax.with_sharding_constraint(r, NamedSharding(MESH, P(None))), spmd_axis_name="x")
    with use_abstract_mesh(MESH):
        assert types(constrained, ROWS) == "[8@x,8]"
    with pytest.raises(
        ValueError, match=r"Got spmd_axis_name=\('y',\) and arrays sharded on explicit_mesh_axis=\('x',"
    ):
        types(px.vmap(lambda r: r, spmd_axis_name="y"), ROWS)


@pytest.mark.parametrize("trace", [lambda f: f, px.jit, px.checkpoint])
def test_arguments_put_no_mesh_into_force(trace):
    seen = []

    def fun(x):
        seen.append((get_abstract_mesh().empty, str(px.typeof(x))))
        with pytest.raises(ValueError, match="Using PartitionSpec when you are not under a mesh context"):
            px.reshard(x, P("y"))
        with pytest.raises(ValueError, match="Using PartitionSpec when you are not under a mesh context"):
            jnp.dot(x, x, out_sharding=P("x"))
        return x

    px.eval_shape(trace(fun), ROWS)
    assert seen == [(True, "float32[8@x,8]")]


def test_auto_axes():
    seen = []

    @auto_axes
    def add(x, y):
        seen.append((get_abstract_mesh().auto_axes, str(px.typeof(x))))
        return x + y

    assert types(lambda a, b: add(a, b, out_sharding=P("x", None)), ROWS, COLUMNS) == "[8@x,8]"
    assert seen == [(("x", "y"), "float32[8,8]")]
    with pytest.raises(TypeError, match="Missing required keyword argument: 'out_sharding'"):
        types(add, ROWS, COLUMNS)

    @auto_axes(axes="x", out_sharding=P("y", "x"))
    def half(x):
        seen.append((get_abstract_mesh().auto_axes, str(px.typeof(x))))
        return x * 2

    assert types(half, BOTH) == "[8@y,4@x]"
    assert seen[1:] == [(("x",), "float32[8,4@y]")]
    with pytest.raises(ValueError, match=r"axis 'z' is not found in mesh: \('x', 'y'\)"):
        types(auto_axes(lambda x: x, axes="z", out_sharding=P()), ROWS)


def test_explicit_axes():
    mesh = AbstractMesh((4, 2), ("x", "y"))
    seen = []

    @explicit_axes
    def inner(x):
        seen.append((get_abstract_mesh().explicit_axes, str(px.typeof(x * 2))))
        return x * 2

    with px.sharding.use_abstract_mesh(mesh):
        assert types(lambda a: inner(a, in_sharding=P("x", "y")), WHOLE) == "[8,8]"
    assert seen == [(("x", "y"), "float32[8@x,8@y]")]
    with pytest.raises(ValueError, match="Context mesh cannot be empty"):
        px.make_jaxpr(lambda a: inner(a, in_sharding=P("x")))(WHOLE)


def test_resharding_what_cannot_be():
    with pytest.raises(ValueError, match="Resource axis: z of P"):
        types(lambda a: px.reshard(a, P("z")), ROWS)
    with pytest.raises(ValueError, match="array axis 0 is partitioned 4 times, but the dimension size is 6"):
        types(lambda a: px.reshard(a, NamedSharding(MESH, P("x"))), arg((6,)))
    with pytest.raises(ValueError, match=r"enter into a mesh context via `polyax.set_mesh`. Got P\('x',\)"):
        px.reshard(jnp.ones(8), P("x"))


def test_types_of_what_lies_nowhere():
    assert (
        str(px.typeof(jnp.ones((2, 3))).sharding)
        == "NamedSharding(mesh=AbstractMesh((), axis_types=()), spec=P(None, None))"
    )
    assert px.typeof(1.0).sharding.spec == P()


@pytest.mark.parametrize("cases", ["explicit_cases.py", "sums_cases.py"])
def test_on_eight_virtual_devices(cases):
    process.cases(Path(__file__).with_name(cases), POLYAX_DEVICE="cpu", POLYAX_NUM_CPU_DEVICES="8")


OUT = P("x", None)
PLACED = [
    (lambda a, b: jnp.dot(a, b, out_sharding=OUT), (COLUMNS, ROWS), "[8@x,8]"),
    (lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=OUT), (COLUMNS, ROWS), "[8@x,8]"),
    (lambda a, b: jnp.tensordot(a, b, 1, out_sharding=OUT), (COLUMNS, ROWS), "[8@x,8]"),
    (lambda a, b: lax.dot(a, b, out_sharding=OUT), (COLUMNS, ROWS), "[8@x,8]"),
    (px.grad(lambda a, b: jnp.dot(a, b, out_sharding=OUT).sum(), (0, 1)), (COLUMNS, ROWS), "[8,8@x] [8@x,8]"),
    (lambda a: (a.reshape(32, out_sharding=P("x")), jnp.ravel(a, out_sharding=P("y"))), (BOTH,), "[32@x] [32@y]"),
    (
        lambda a: (jnp.zeros_like(a), jnp.full_like(a, 3.0), jnp.ones_like(a, shape=(3,))),
        (ROWS,),
        "[8@x,8] [8@x,8] [3]",
    ),
    (lambda: (jnp.full((8,), 1.0, out_sharding=P("x")), jnp.array([1.0] * 8, out_sharding=P("y"))), (), "[8@x] [8@y]"),
    (lambda: jnp.broadcast_to(jnp.arange(4.0), (8, 4), out_sharding=OUT), (), "[8@x,4]"),
    (lambda a: a.at[0].set(1.0, out_sharding=OUT), (ROWS,), "[8@x,8]"),
    (lambda a: a.at[jnp.array([0, 1])].get(out_sharding=P(None, "x")), (ROWS,), "[2,8@x]"),
    (lambda a: px.ops.segment_sum(a, jnp.arange(8), 8, out_sharding=P("y")), (ROWS,), "[8@y,8]"),
    (lambda: px.nn.initializers.normal()(px.random.PRNGKey(0), (8, 4), "float32", OUT), (), "[8@x,4]"),
]


@pytest.mark.parametrize(("fun", "args", "wanted"), PLACED)
def test_users_say_how_results_are_cut(fun, args, wanted):
    with px.sharding.use_abstract_mesh(MESH):
        assert types(fun, *args) == wanted


def test_out_sharding_has_to_be_one():
    with pytest.raises(TypeError, match="`out_sharding` should be a NamedSharding or a PartitionSpec, got 'x'"):
        jnp.zeros(8, out_sharding="x")


def test_diagonals_are_rows_cut_as_the_vector_is():
    assert types(jnp.diag, VECTOR) == "[8@x,8]"


def test_types_tell_nothing_of_axes_that_are_the_partitioners():
    cut = NamedSharding(AbstractMesh((2,), ("x",)), P("x"))
    assert px.core.ShapedArray((5, 2), jnp.int32, sharding=cut).sharding.spec == P(None, None)
    both = px.core.ShapedArray((8, 3), jnp.int32, sharding=NamedSharding(HALF, P("x", "y")))
    assert both.sharding.spec == P("x", None)
