"""jit: caching, static and donated arguments, nesting, devices, and settings that are part of a program."""

import functools
import gc
import inspect
import weakref

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.experimental.pjit import pjit
from polyax.runtime.running import dispatch


def _counting(fun):
    calls = []

    @functools.wraps(fun)
    def counted(*args, **kwargs):
        calls.append(1)
        return fun(*args, **kwargs)

    return counted, calls


def test_a_function_of_an_outer_value_is_traced_once_for_each_of_these():
    traced = []

    def outer(x):
        @polyax.jit
        def inner(y):
            traced.append(y)
            return y * x

        return inner(1.0) + inner(2.0) + inner(np.float32(3))

    assert polyax.jit(outer)(2.0).item() == 12 and len(traced) == 2
    assert polyax.grad(outer)(2.0).item() == 6 and len(traced) == 4
    assert polyax.vmap(outer)(np.arange(3.0)).tolist() == [0, 6, 12] and len(traced) == 6


def test_traced_once_for_each_type():
    f, calls = _counting(lambda x: x + 1)
    g = polyax.jit(f)
    for x in (jnp.ones(3), jnp.zeros(3), np.ones(3, np.float32)):
        g(x)
    assert len(calls) == 1
    g(jnp.ones(4))
    g(jnp.ones(3, int))
    assert len(calls) == 3


def test_python_scalars_are_weakly_typed_arguments():
    f = polyax.jit(lambda x, y: x * y)
    assert f(jnp.ones(2, jnp.bfloat16), 2.0).dtype == jnp.bfloat16
    assert f(1, 2).weak_type


def test_pytrees_in_and_out():
    f = polyax.jit(lambda t, *, s: {"sum": t[0] + t[1]["x"], "both": (t[0], s)})
    out = f((jnp.ones(2), {"x": 3.0}), s=[1, None])
    np.testing.assert_array_equal(out["sum"], [4, 4])
    assert [v if v is None else int(v) for v in out["both"][1]] == [1, None]


def test_static_arguments_by_position_and_by_name():
    def f(x, n, flag=False):
        assert isinstance(n, int)
        return x * n if flag else x + n

    for options in ({"static_argnums": (1, 2)}, {"static_argnames": ("n", "flag")}, {"static_argnums": (-2, -1)}):
        g = polyax.jit(f, **options)
        assert float(g(2.0, 3, True)) == 6.0
        assert float(g(2.0, 3, flag=False)) == 5.0
        assert float(g(2.0, n=3)) == 5.0


def test_equal_static_values_of_different_types_are_different_programs():
    f = polyax.jit(lambda x, n: x * n, static_argnums=1)
    assert f(jnp.ones(2, int), 1).dtype == jnp.int32
    assert f(jnp.ones(2, int), 1.0).dtype == jnp.float32


def test_static_arguments_must_be_hashable():
    with pytest.raises(ValueError, match=r"(?s)Non-hashable static arguments.*call of f .*list.*argument 1"):

        @functools.partial(polyax.jit, static_argnums=1)
        def f(x, shape):
            return x

        f(1.0, [2, 3])


def test_static_positions_that_do_not_exist():
    with pytest.raises(ValueError, match=r"static_argnums=\(3,\), but only accepts 1 positional"):
        polyax.jit(lambda x: x, static_argnums=3)
    with pytest.raises(ValueError, match="invalid argnames"):
        polyax.jit(lambda x: x, static_argnames="y")


def test_methods():
    class Scale:
        def __init__(self, by):
            self.by = by

        @functools.partial(polyax.jit, static_argnums=0)
        def __call__(self, x):
            return x * self.by

    assert float(Scale(3)(2.0)) == 6.0


def test_closures_over_arrays_and_tracers():
    scale = jnp.full(2, 3.0)
    f = polyax.jit(lambda x: x * scale)
    np.testing.assert_array_equal(f(jnp.ones(2)), [3, 3])

    @polyax.jit
    def outer(x):
        return polyax.jit(lambda y: y + x)(2 * x)

    assert float(outer(1.0)) == 3.0
    assert float(outer(2.0)) == 6.0
    assert float(polyax.grad(outer)(2.0)) == 3.0


def test_inner_function_shared_by_two_outer_traces():
    inner = polyax.jit(lambda x: jnp.sin(x))
    f, g = polyax.jit(lambda x: inner(x) + 1), polyax.jit(lambda x: inner(x) + 2)
    assert float(g(0.0)) - float(f(0.0)) == 1.0


def test_donated_arguments_are_deleted():
    f = polyax.jit(lambda x, y: x + y, donate_argnums=0)
    x, y = jnp.ones(1000), jnp.ones(1000)
    np.testing.assert_array_equal(f(x, y), np.full(1000, 2))
    assert x.is_deleted()
    assert not y.is_deleted()
    with pytest.raises(RuntimeError, match=r"deleted with shape=float32\[1000\]"):
        np.asarray(x)


def test_using_a_deleted_argument_is_an_error():
    x = jnp.ones(3)
    f = polyax.jit(lambda x: x + 1)
    f(x)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(x)


def test_outputs_may_be_inputs_and_constants():
    f = polyax.jit(lambda x: (x, 1.0, jnp.ones(2), x))
    x = jnp.arange(3)
    a, one, ones, b = f(x)
    np.testing.assert_array_equal(a, b)
    assert float(one) == 1.0
    np.testing.assert_array_equal(ones, [1, 1])


def test_settings_are_part_of_the_program():
    f = polyax.jit(lambda: jnp.ones(1))
    assert f().dtype == np.float32
    with polyax.enable_x64(True):
        assert f().dtype == np.float64
    assert f().dtype == np.float32


def test_disable_jit_runs_python():
    seen = []

    @polyax.jit
    def f(x):
        seen.append(float(x))  # impossible on a tracer
        return x

    with polyax.disable_jit():
        f(2.0)
    assert seen == [2.0]


def test_clear_cache():
    f, calls = _counting(lambda x: x)
    g = polyax.jit(f)
    g(1.0)
    g.clear_cache()
    g(1.0)
    assert len(calls) == 2


def test_eager_programs_are_bounded(monkeypatch):
    monkeypatch.setattr(dispatch, "EAGER_PROGRAMS", len(dispatch._eager) + 8)
    for n in range(40):
        polyax.lax.integer_pow(2.0, n + 200)
    assert len(dispatch._eager) <= dispatch.EAGER_PROGRAMS


def test_inline_leaves_no_call():
    f = polyax.jit(lambda x: jnp.sin(x), inline=True)
    assert [e.primitive.name for e in polyax.make_jaxpr(f)(1.0).eqns] == ["sin"]


def test_what_is_no_array_is_named():
    f = polyax.jit(lambda p: p["x"])
    with pytest.raises(TypeError, match=r"Error interpreting argument to .*<class 'str'>.* at path p\['name'\]"):
        f({"x": 1.0, "name": "a"})


def test_result_that_is_no_array_is_named():
    with pytest.raises(TypeError, match=r"<lambda> at .* traced for jit returned .*<class 'str'>.*'text'"):
        polyax.jit(lambda x: "text")(1.0)


def test_debug_nans_looks_at_data():
    with polyax.debug_nans(True):
        for data in (np.nan, [1.0, np.nan], np.array([np.nan, 1.0])):
            with pytest.raises(FloatingPointError, match=r"\(nan\) encountered in array, in data of type ~?float32"):
                jnp.array(data)
        assert jnp.array([1, 2]).tolist() == [1, 2] and jnp.array(np.inf) == np.inf
    with polyax.debug_infs(True), pytest.raises(FloatingPointError, match="inf"):
        jnp.asarray(np.inf)


def test_debug_nans_names_the_function():
    f = polyax.jit(lambda x: jnp.log(x))
    with (
        polyax.debug_nans(True),
        pytest.raises(FloatingPointError, match="encountered in log, .* leads to a result of <lambda>"),
    ):
        f(-1.0)


def test_options_of_compilers():
    for options in (None, {}, {"xla_cpu_enable_fast_math": True}):
        assert polyax.jit(lambda x: x + 1, compiler_options=options)(1).item() == 2
    unknown = polyax.jit(lambda x: x + 1, compiler_options={"fast": True})
    lowered = unknown.lower(1)
    for use in (lambda: unknown(1), lowered.compile):
        with pytest.raises(polyax.errors.JaxRuntimeError, match="INVALID_ARGUMENT: No such compile option: 'fast'"):
            use()


def test_options_of_compilers_are_for_whole_programs():
    options = {"xla_embed_ir_in_executable": True}
    double = polyax.jit(lambda x: x * 2, compiler_options=options)
    assert double(1.0) == polyax.jvp(double, (1.0,), (1.0,))[0] == double.lower(1.0).compile()(1.0) == 2
    assert polyax.vmap(double)(jnp.ones(2)).tolist() == [2, 2] and polyax.eval_shape(double, 1.0).shape == ()
    for inside in (polyax.jit(lambda x: double(x) + 1), polyax.grad(double), polyax.make_jaxpr(double)):
        told = r"only be passed to top-level `jax.jit`.*xla_embed_ir.* nested jit with name: <lambda> and source info"
        with pytest.raises(ValueError, match=told):
            inside(1.0)


def test_donated_by_name_and_by_position():
    for options in ({"donate_argnames": "y"}, {"donate_argnums": 1}):
        x, y = jnp.ones(10), jnp.ones(10)
        polyax.jit(lambda x, y: x + y, **options)(x, y=y)
        assert y.is_deleted() and not x.is_deleted()


def test_options_that_contradict_each_other():
    with pytest.raises(ValueError, match="static_argnames and donate_argnames cannot intersect.*{'x'} appear in both"):
        polyax.jit(lambda x: x, static_argnums=0, donate_argnums=0)
    with pytest.raises(TypeError, match="device must be a Device, .* got 'cpu'"):
        polyax.jit(lambda x: x, device="cpu")


@pytest.mark.parametrize("option", ["device", "backend"])
def test_devices_of_jit_are_deprecated(option: str) -> None:
    first = polyax.devices()[0]
    with pytest.warns(DeprecationWarning, match="backend and device argument on jit is deprecated") as told:
        polyax.jit(lambda x: x, **{option: first if option == "device" else first.platform})
    assert [w.filename for w in told] == [__file__]


def test_a_jitted_function_has_the_signature_of_its_function() -> None:
    def f(x: float, *, n: int = 2) -> float:
        return x * n

    for follow in (True, False):
        assert inspect.signature(polyax.jit(f), follow_wrapped=follow) == inspect.signature(f)
    assert not hasattr(polyax.jit(f), "anything")


def test_what_it_shows_of_the_function() -> None:
    def f(x: int) -> int:
        return x

    f.note = "kept"  # type: ignore[attr-defined]
    jitted = polyax.jit(f)
    assert (jitted.__annotations__, jitted.note) == (f.__annotations__, "kept")

    class Silent:
        def __call__(self) -> None: ...

        def __repr__(self) -> str:
            raise ValueError("no words")

    assert repr(polyax.jit(Silent())) == "<PjitFunction>"
    with pytest.raises(TypeError, match="staticmethod arguments are not supported"):
        polyax.jit(staticmethod(f))


def test_what_a_function_closes_over_goes_with_it() -> None:
    for wrap in (lambda f: f, polyax.grad, polyax.checkpoint):
        x = jnp.arange(5.0)
        alive = weakref.ref(x)
        f = polyax.jit(wrap(lambda y, x=x: (y * x).sum()))
        f(1.0)
        f(jnp.float32(1.0))
        del f, x
        gc.collect()
        assert alive() is None


def test_calls_without_arrays_follow_the_default_device() -> None:
    here, there = (polyax.devices(name)[0] for name in ("reference", "cpu"))
    none, number = polyax.jit(lambda: jnp.ones(3)), polyax.jit(lambda x: x + 1)
    for device in (here, there, here, there, there):
        with polyax.default_device(device):
            assert (none().device, number(1.0).device, number(jnp.float32(1)).device) == (device,) * 3
    x = polyax.device_put(1.0, there)
    with polyax.default_device(here):
        assert number(x).device is there
        assert polyax.jit(lambda: jnp.ones(3), device=there)().device is there


@pytest.mark.parametrize("error", [TypeError, ValueError])
def test_static_arguments_that_cannot_be_compared(error):
    class Odd:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            raise error("not today")

    f = polyax.jit(lambda x, how: x, static_argnames="how")
    f(1.0, how=Odd())
    with pytest.raises(ValueError, match="should be comparable using __eq__: 'how' of type Odd.*not today") as caught:
        f(1.0, how=Odd())
    assert isinstance(caught.value.__cause__, error)


def test_the_function_is_given_by_position():
    with pytest.raises(TypeError, match="positional-only arguments passed as keyword arguments: 'fun'"):
        polyax.jit(fun=jnp.sin)


def test_none_is_no_function():
    for decorator in (polyax.jit, pjit):
        with pytest.raises(TypeError, match="Expected a callable value, got None"):
            decorator(None)
        assert decorator(static_argnums=0)(lambda n: n + 1)(2) == 3
