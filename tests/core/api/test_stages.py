"""Ahead of time: what each stage knows, how compiled programs are called, and what they refuse."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import stages
from polyax.experimental.layout import Format, Layout
from polyax.sharding import NamedSharding, SingleDeviceSharding

X = polyax.ShapeDtypeStruct((3,), "float32")


@polyax.jit
def model(x: Any, *, p: Any) -> Any:
    return {"y": x * p["w"] + p["b"], "norm": jnp.sum(x)}


PARAMS = {"w": X, "b": 1.0}


def test_what_all_stages_know() -> None:
    traced = model.trace(X, p=PARAMS)
    lowered = traced.lower()
    for stage in (traced, lowered, lowered.compile()):
        assert stage.fun_name == "model" and stage.donate_argnums == ()
        assert repr(stage.in_tree) == "PyTreeDef(((*,), {'p': {'b': *, 'w': *}}))"
        assert repr(stage.out_tree) == "PyTreeDef({'norm': *, 'y': *})"
        assert stage.out_info["y"].update(sharding=None) == X and stage.out_info["norm"].shape == ()
        assert str(stage.in_avals[0][0]) == "float32[3]" == str(stage.out_avals["y"])
        info = stage.args_info[1]["p"]["w"]
        assert isinstance(info, stages.ArgInfo)
        assert (info.shape, info.dtype, info.donated) == ((3,), np.float32, False)


def test_programs_as_text() -> None:
    traced = model.trace(X, p=PARAMS)
    assert "mul" in str(traced.jaxpr) and "mul" in traced.lower().as_text()
    assert "test_stages.py" in traced.lower().as_text(debug_info=True)
    assert traced.lower().compiler_ir() is traced.jaxpr
    with pytest.raises(ValueError, match="unknown dialect: stablehlo"):
        traced.lower().as_text("stablehlo")


@pytest.mark.sample
def test_compiled_programs_run(platform: str) -> None:
    compiled = model.lower(X, p=PARAMS).compile()
    x = np.arange(3, dtype=np.float32)
    out = compiled(x, p={"w": jnp.full(3, 2.0), "b": 1.0})
    np.testing.assert_allclose(out["y"], 2 * x + 1)
    assert platform in str(compiled.device) and compiled.as_text()
    assert compiled.cost_analysis()["bytes accessed"] > 0
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == 28 and memory.output_size_in_bytes == 16
    assert compiled.input_shardings[0][0].device_set == {compiled.device} == compiled.output_shardings["y"].device_set
    assert compiled.runtime_executable() is not None and compiled.report.kernels


def test_a_device_of_choice() -> None:
    device = polyax.devices("reference")[0]
    compiled = polyax.jit(lambda x: x + 1, device=device).lower(X).compile()
    out = compiled(np.zeros(3, np.float32))
    assert out.device is device and compiled.device is device
    elsewhere = polyax.device_put(jnp.ones(3), polyax.devices("cpu")[0])
    with pytest.raises(ValueError, match=r"x with shape float32\[3\]:\n.*\n.*\nMove them with device_put"):
        compiled(elsewhere)


def test_donated_arguments() -> None:
    lowered = polyax.jit(lambda x, y: x + y, donate_argnums=0).lower(X, X)
    assert lowered.donate_argnums == (0,) and lowered.args_info[0][0].donated and not lowered.args_info[0][1].donated
    x, y = jnp.ones(3), jnp.ones(3)
    compiled = lowered.compile()
    assert compiled(x, y).tolist() == [2, 2, 2] and x.is_deleted() and not y.is_deleted()
    assert compiled.memory_analysis().alias_size_in_bytes == 12
    with pytest.raises(RuntimeError, match="deleted"):
        compiled(x, y)


def test_static_arguments_are_part_of_the_program() -> None:
    f = polyax.jit(lambda x, n: x * n, static_argnums=1)
    compiled = f.lower(X, 3).compile()
    assert compiled(jnp.ones(3)).tolist() == [3, 3, 3]
    with pytest.raises(TypeError, match="at args, seen tuple of length 1 but now given tuple of length 2"):
        compiled(jnp.ones(3), 3)


COMPILED = model.lower(X, p=PARAMS).compile()
GOOD = {"w": jnp.ones(3), "b": 1.0}
CALLS: dict[str, tuple[Any, str]] = {
    "no argument": (lambda: COMPILED(jnp.ones(3)), "1 mismatches, including:\n.*at kwargs, seen .* with 1 child"),
    "another structure": (lambda: COMPILED(jnp.ones(3), p=[1.0]), r"at kwargs\['p'\], seen .*dict.* given .*list"),
    "another shape": (
        lambda: COMPILED(jnp.ones(4), p=GOOD), r"'x' compiled with float32\[3\] and called with float32\[4\]",
    ),
    "another dtype": (lambda: COMPILED(jnp.ones(3), p={**GOOD, "b": 1}), r"'p\['b'\]' compiled with float32\[\] .*int"),
    "no array": (lambda: COMPILED("text", p=GOOD), "not a valid"),
    "in jit": (lambda: polyax.jit(lambda x: COMPILED(x, p=GOOD))(jnp.ones(3)), "Cannot apply JAX transformations"),
    "in vmap": (lambda: polyax.vmap(lambda x: COMPILED(x, p=GOOD))(jnp.ones((2, 3))), "argument of Tracer type"),
    "in grad": (lambda: polyax.grad(lambda x: COMPILED(x, p=GOOD)["norm"])(jnp.ones(3)), "argument of Tracer type"),
    "in grad, of another shape": (
        lambda: polyax.grad(lambda x: COMPILED(x, p=GOOD)["norm"])(jnp.ones(4)), "Cannot apply JAX transformations",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CALLS)
def test_calls_that_do_not_fit(case: str) -> None:
    call, message = CALLS[case]
    with pytest.raises(TypeError, match=message):
        call()


def test_options_that_do_not_exist() -> None:
    with pytest.raises(polyax.errors.JaxRuntimeError, match="No such compile option: 'fast'"):
        model.lower(X, p=PARAMS).compile({"fast": 1})


def test_the_devices_of_a_program_may_be_named() -> None:
    lowered = polyax.jit(lambda x: x + 1).lower(X)
    (device,) = lowered.compile().input_shardings[0][0].device_set
    assert lowered.compile(device_assignment=[device])(jnp.ones(3)).tolist() == [2, 2, 2]
    told = (
        r"must match the device_assignment .* passed to compile \[0, 0\] on platform .* out_shardings \[0\] on platform"
    )
    with pytest.raises(ValueError, match=told):
        lowered.compile(device_assignment=[device] * 2)


def test_programs_are_the_same_for_all_platforms() -> None:
    traced = model.trace(X, p=PARAMS)
    lowered = traced.lower(lowering_platforms=("tpu", "mine"))
    assert lowered.as_text() == traced.lower().as_text()
    platform = polyax.devices()[0].platform
    assert traced.lower(lowering_platforms=("tpu", platform)).compile().as_text()
    with pytest.raises(ValueError, match=rf"lowered for tpu, mine, and is to run on .*{platform}.* name that in"):
        lowered.compile()


def test_shapes_alone() -> None:
    assert model.eval_shape(X, p=PARAMS)["y"] == X
    out = polyax.eval_shape(lambda t: {"a": t["x"][None], "b": None}, {"x": X})
    assert out == {"a": polyax.ShapeDtypeStruct((1, 3), "float32"), "b": None}
    with pytest.raises(ValueError, match="dtype must be specified"):
        polyax.ShapeDtypeStruct((3,), None)


def test_weak_types_pass_through_structs() -> None:
    weak = polyax.ShapeDtypeStruct((), "float32", weak_type=True)
    assert polyax.eval_shape(lambda x: x * jnp.ones(2, jnp.bfloat16), weak).dtype == jnp.bfloat16


def test_what_jit_returns() -> None:
    assert isinstance(model, stages.Wrapped) and not isinstance(lambda x: x, stages.Wrapped)
    f = polyax.jit(lambda x: x)
    f(1.0), f(jnp.ones(2))
    assert f._cache_size() == 2
    f.clear_cache()
    assert f._cache_size() == 0


def test_all_caches_are_cleared() -> None:
    calls = []
    f = polyax.jit(lambda x: calls.append(x) or x)
    f(1.0), f(1.0)
    polyax.clear_caches()
    assert f(1.0).item() == 1.0 and len(calls) == 2


def test_inlined_programs_and_unused_arguments() -> None:
    kept = polyax.jit(lambda x, unused: jnp.sin(x), keep_unused=True)
    assert polyax.make_jaxpr(kept)(X, X).eqns[0].params["keep_unused"] is True
    inner = polyax.jit(lambda x, unused: jnp.sin(x), inline=True, keep_unused=True)
    closed = polyax.make_jaxpr(polyax.jit(lambda x: inner(x, x)))(1.0)
    assert [e.primitive.name for e in closed.eqns[0].params["jaxpr"].eqns] == ["sin"]


def test_methods_have_stages() -> None:
    class Scale:
        by = 3

        @functools.partial(polyax.jit, static_argnums=0)
        def __call__(self, x: Any) -> Any:
            return x * self.by

    scale = Scale()
    assert Scale.__call__.lower(scale, X).compile()(jnp.ones(3)).tolist() == [3, 3, 3]


def test_compiled_programs_tell_where_results_lie() -> None:
    compiled = polyax.jit(lambda x: x + 1).lower(X).compile()
    assert compiled.out_info.sharding == compiled(jnp.ones(3)).sharding
    assert polyax.jit(lambda x: x + 1).lower(X).out_info.sharding is None


def test_what_is_lowered_has_no_weak_types() -> None:
    traced = polyax.jit(lambda x: 2 * x).trace(1.0)
    lowered = traced.lower()
    assert [s.out_info.weak_type for s in (traced, lowered, lowered.compile())] == [True, False, False]


def test_shardings_of_shapes() -> None:
    mesh = polyax.sharding.Mesh(polyax.devices()[:1], ("x",))
    spec = polyax.sharding.PartitionSpec("x")
    with polyax.set_mesh(mesh):
        assert polyax.ShapeDtypeStruct((2,), "float32", sharding=spec).sharding == NamedSharding(mesh, spec)
    with pytest.raises(TypeError, match="the context mesh cannot be empty"):
        polyax.ShapeDtypeStruct((2,), "float32", sharding=spec)
    with pytest.raises(ValueError, match="sharding should be an instance of .* Got 3 of type <class 'int'>"):
        polyax.ShapeDtypeStruct((2,), "float32", sharding=3)
    where = SingleDeviceSharding(polyax.devices()[0])
    assert polyax.ShapeDtypeStruct((2,), "float32", sharding=Format(None, where)).sharding == where
    turned = polyax.ShapeDtypeStruct((2, 3), "float32", sharding=Format(Layout((1, 0)), where))
    assert turned.format == turned.update(shape=(3, 2)).format == Format(Layout((1, 0)), where) != turned.sharding
    assert turned != turned.update(sharding=Format(None, where)) and "format=Layout(" in str(turned)
    with pytest.raises(ValueError, match="You are updating ShapeDtypeStruct with a .* had a concrete layout Format"):
        turned.update(sharding=where)
    with pytest.raises(TypeError, match="`Layout.AUTO` cannot be used in place of a device-local layout"):
        polyax.ShapeDtypeStruct((2,), "float32", sharding=Format(Layout.AUTO, where))


def test_make_jaxpr_names_what_it_gives() -> None:
    def scaled(x):
        return 2 * x

    given = polyax.make_jaxpr(scaled)
    assert given.__name__ == "make_jaxpr(scaled)"
    assert given.__qualname__.startswith("make_jaxpr(test_make_jaxpr_names")
    assert given.__module__ == "polyax"


def _first(x, y):
    unread = y + 1  # noqa: F841
    return x * 2


def test_programs_do_not_take_what_they_do_not_need() -> None:
    bulk = polyax.ShapeDtypeStruct((4, 4), "float32")
    for keep, last, taken in ((False, None, 12), (True, bulk, 76)):
        lowered = polyax.jit(_first, keep_unused=keep).lower(X, bulk)
        assert [a.shape for a in lowered.in_avals[0]] == [(3,), (4, 4)]
        compiled = lowered.compile()
        places, formats = compiled.input_shardings[0], compiled.input_formats[0]
        assert places[0] is not None and (places[1] is None) == (formats[1].layout is None) == (last is None)
        assert compiled.memory_analysis().argument_size_in_bytes == taken
        assert compiled(jnp.ones(3), jnp.ones((4, 4))).tolist() == [2, 2, 2]
