"""The front end that all share who trace functions on demand: what makes calls alike, and how many are remembered."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.trace import traces
from polyax.trace.calls import Signature

X = np.ones((1, 3), np.float32)


def counted() -> tuple[Any, list[Any]]:
    """A function of two arrays and an option, and the options that it was traced with."""
    seen: list[Any] = []

    def f(x: Any, y: Any = 1.0, n: Any = 0) -> Any:
        seen.append(n)
        return x + y if n else x - y

    return f, seen


CALLERS: dict[str, Any] = {
    "jit": polyax.jit,
    "pmap": polyax.pmap,
    "checkpoint": polyax.checkpoint,
    "make_jaxpr": polyax.make_jaxpr,
    "trace": lambda f, **options: polyax.jit(f, **options).trace,
    "explain": lambda f, **options: partial(polyax.explain(polyax.jit(f, **options))),
}
STATIC = {"pmap": "static_broadcasted_argnums"}
BY_NAME = ("jit", "checkpoint", "trace", "explain")


@pytest.mark.parametrize("caller", CALLERS)
def test_equal_calls_are_traced_once(caller: str) -> None:
    f, seen = counted()
    g = CALLERS[caller](f)
    g(x=X, y=X), g(y=X, x=X), g(y=2 * X, x=X)
    assert len(seen) == 1
    g(X, y=X), g(X, X)
    assert len(seen) == 3, "structures differ"
    g(X, X[:, :1]), g(X, X.astype(int))
    assert len(seen) == 5, "types differ"


@pytest.mark.parametrize("caller", CALLERS)
def test_static_values_and_their_types_are_told_apart(caller: str) -> None:
    f, seen = counted()
    g = CALLERS[caller](f, **{STATIC.get(caller, "static_argnums"): 2})
    for n in (1, 1, True, 1.0, 0, 1):
        g(X, X, n)
    assert seen == [1, True, 1.0, 0]


@pytest.mark.parametrize("caller", BY_NAME)
@pytest.mark.parametrize(
    "options", [{"static_argnames": "n"}, {"static_argnames": ("n",)}, {"static_argnums": -1}], ids=str
)
def test_positions_and_names_complete_each_other(caller: str, options: Any) -> None:
    f, seen = counted()
    g = CALLERS[caller](f, **options)
    g(X, X, 3)
    if caller == "checkpoint" and "static_argnums" in options:
        with pytest.raises(ValueError, match="less than `len\\(args\\)`, but got \\(2,\\), while `len\\(args\\)` = 1"):
            polyax.checkpoint(f, static_argnums=2)(X, n=3)
    else:
        g(X, n=3, y=X), g(n=3, y=X, x=X), g(X, y=X, n=3)
    assert set(seen) == {3}


def test_positions_and_names_that_are_both_given_stay_as_they_are() -> None:
    seen: list[Any] = []
    f = lambda x, y: seen.append([isinstance(a, polyax.core.Tracer) for a in (x, y)])
    polyax.jit(f, static_argnums=1, static_argnames=())(2, y=3)
    polyax.jit(f, static_argnums=(), static_argnames="y")(2, 3)
    polyax.jit(f, static_argnums=1, static_argnames="x")(x="text", y=3)
    assert seen == [[True, True], [True, True], [False, True]]


def test_static_positions_count_from_the_end_of_each_call() -> None:
    g = polyax.jit(lambda *xs: xs[0] * len(xs[-1]), static_argnums=-1)
    assert (g(2.0, "abc"), g(2.0, 1.0, "ab")) == (6.0, 4.0)


def test_positions_that_do_not_exist() -> None:
    f, _ = counted()
    for caller in ("jit", "make_jaxpr"):
        with pytest.raises(ValueError, match=r"Jitted function has static_argnums=\(3,\), but only accepts 3 "):
            CALLERS[caller](f, static_argnums=3)
    with pytest.raises(ValueError, match=r"pmapped function has donate_argnums=\(5,\), but only accepts 3 positional"):
        polyax.pmap(f, donate_argnums=5)
    with pytest.raises(ValueError, match=r"custom_jvp function has nondiff_argnums=\(4,\), but only accepts 3"):
        polyax.custom_jvp(f, nondiff_argnums=(4,))
    with pytest.raises(ValueError, match=r"custom_vjp function has invalid argnames {'z'} in nondiff_argnames"):
        polyax.custom_vjp(f, nondiff_argnames=("z",))
    with pytest.raises(TypeError, match="`static_argnums` argument of a jitted function must be an int or ints"):
        polyax.jit(f, static_argnums="n")


NO_HASH = (
    r"Non-hashable static arguments are not supported\. An error occurred in a call of f while trying to hash an "
    r"object of type <class 'tuple'>, \(\[\],\)\. The error was:\nTypeError: unhashable type: 'list'\n"
    r"It is argument 2\."
)


@pytest.mark.parametrize("caller", ["jit", "pmap", "make_jaxpr"])
def test_static_values_need_a_hash(caller: str) -> None:
    f, _ = counted()
    with pytest.raises(ValueError, match=NO_HASH):
        CALLERS[caller](f, **{STATIC.get(caller, "static_argnums"): 2})(X, X, ([],))


def test_checkpoint_takes_static_values_without_a_hash_each_time_anew() -> None:
    f = polyax.checkpoint(lambda x, scales: x * sum(scales), static_argnums=1)
    scales = [1, 2]
    assert f(2.0, scales) == 6.0
    scales.append(3)
    assert f(2.0, scales) == 12.0 == 2 * polyax.grad(f)(2.0, scales)


@pytest.mark.parametrize("caller", [c for c in CALLERS if c != "make_jaxpr"])
def test_what_is_no_array_is_named(caller: str) -> None:
    f, _ = counted()
    where = {"trace": "jit", "explain": "jit"}.get(caller, caller)
    with pytest.raises(
        TypeError, match=rf"(?s)of type <class 'str'>.*Argument y of {where}\(f\) is 'text'.*make it static"
    ):
        CALLERS[caller](f)(X, y="text")


def test_leaves_are_named_in_their_order(caplog: pytest.LogCaptureFixture) -> None:
    g = polyax.jit(lambda n, z, *, b, a, **rest: z + a, static_argnums=0)
    with polyax.explain_cache_misses(True):
        g(1, 2.0, b=X, a=X, c=X), g(1, 2.0, a=X, c=X, b=X[0])
    assert "* at b, now f32[3] and before f32[1,3]" in caplog.messages[-1]
    assert Signature(lambda p, *rest: p).split(({"w": 1}, 2, 3), {}).names() == ["p['w']", "rest[0]", "rest[1]"]


@pytest.mark.parametrize("caller", CALLERS)
def test_misses_are_explained(caller: str, caplog: pytest.LogCaptureFixture) -> None:
    f, _ = counted()
    g = CALLERS[caller](f, **{STATIC.get(caller, "static_argnums"): 2})
    with polyax.explain_cache_misses(True):
        g(X, X, 0), g(X, X, 0), g(X, X.astype(int), 0), g(X, X, "a")
    told = [m for m in caplog.messages if "TRACING CACHE MISS" in m]
    assert len(told) == 3 and "never seen function" in told[0]
    assert "for f defined at" in told[1] and "* at y, now i32[1,3] and before f32[1,3]" in told[1]
    assert "* at static argument 2, now 'a' of type str and before 0 of type int" in told[2]


def test_misses_of_loop_bodies_are_explained(caplog: pytest.LogCaptureFixture) -> None:
    def body(c: Any, x: Any) -> Any:
        return c + x, None

    with polyax.explain_cache_misses(True):
        lax.scan(body, jnp.float32(0), X[0]), lax.scan(body, jnp.float32(0), X[0])
        lax.scan(body, jnp.int32(0), np.arange(3))
    told = [m for m in caplog.messages if "body defined at" in m]
    assert len(told) == 2 and "* at c, now i32[]" in told[1]


def test_programs_that_read_names_of_axes_are_told_apart() -> None:
    g = polyax.jit(lambda x: jnp.zeros(lax.axis_size("i")) + x)
    sizes = []
    for size in (2, 3):
        polyax.vmap(lambda x: sizes.append(g.eval_shape(x).shape) or x, axis_name="i")(np.zeros(size, np.float32))
    assert sizes == [(2,), (3,)]


def test_values_of_outer_traces_are_not_kept() -> None:
    def outer(w: Any) -> Any:
        f = polyax.checkpoint(lambda x: x * w)
        return f(1.0) + f(1.0)

    assert polyax.jit(outer)(3.0) == 6.0 and polyax.grad(outer)(3.0) == 2.0
    assert polyax.vmap(outer)(X[0]).tolist() == [2, 2, 2]


@pytest.mark.parametrize("caller", CALLERS)
def test_all_caches_are_cleared(caller: str) -> None:
    f, seen = counted()
    g = CALLERS[caller](f)
    g(X), g(X)
    polyax.clear_caches()
    g(X), g(X)
    assert len(seen) == 2


def test_ten_thousand_kinds_of_calls_fill_no_memory() -> None:
    f, seen = counted()
    g = polyax.jit(f, static_argnums=2)
    for n in range(10_000):
        g.trace(1.0, 2.0, n)
    assert g._cache_size() <= traces.KEPT
    g.trace(1.0, 2.0, 9_999), g.trace(1.0, 2.0, 10_000 - traces.KEPT // 2)
    assert len(seen) == 10_000, "the newest are still known"
    g.trace(1.0, 2.0, 0)
    assert len(seen) == 10_001


@pytest.mark.parametrize("caller", CALLERS)
def test_all_caches_are_traces(caller: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "KEPT", 8)
    f, seen = counted()
    g = CALLERS[caller](f)
    for n in range(1, 21):
        g(jnp.ones((1, n)))
    if caller == "jit":
        assert max(len(g._traces), len(g._entries)) <= 8
    g(jnp.ones((1, 20)))
    assert len(seen) == 20
    g(jnp.ones((1, 1)))
    assert len(seen) == 21


def test_shapes_of_functions_that_return_shapes() -> None:
    struct = polyax.ShapeDtypeStruct((2,), "float32", weak_type=True)
    assert polyax.eval_shape(lambda x: (struct, x[0]), X) == (struct, polyax.ShapeDtypeStruct((3,), "float32"))
    with pytest.raises(TypeError, match="which is not a valid JAX type"):
        polyax.eval_shape(lambda: "text")
    with pytest.raises(TypeError, match="Expected a callable value"):
        polyax.eval_shape(3)  # pyright: ignore


def test_objects_whose_name_is_no_text_are_functions_too() -> None:
    class Named:
        __name__ = 3

        def __call__(self, x: Any) -> Any:
            return x * 2.0

    for transform in (polyax.vmap, polyax.grad, polyax.value_and_grad, polyax.jit):
        assert transform(Named()) is not None
    assert polyax.vmap(Named())(X).tolist() == (X * 2).tolist() and polyax.grad(Named())(1.0) == 2.0


def test_one_function_is_traced_once() -> None:
    f, seen = counted()
    for _ in range(3):
        assert float(polyax.jit(f)(3.0, 1.0)) == 2.0
    assert seen == [0]
    assert float(polyax.jit(f, static_argnames="n")(3.0, 1.0, n=1)) == 4.0
    assert float(polyax.jit(f, static_argnames="n")(3.0, 1.0, n=1)) == 4.0
    assert seen == [0, 1]
    polyax.clear_caches()
    polyax.jit(f)(3.0, 1.0)
    assert seen == [0, 1, 0]


def test_what_is_known_goes_with_the_function() -> None:
    f, _ = counted()
    polyax.jit(f)(3.0, 1.0)
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


class Unsigned:
    @property
    def __signature__(self) -> Any:
        raise TypeError("no signature")

    def __call__(self, *args: Any) -> Any:
        return args[0]


NO_NAMES: dict[str, tuple[Any, Any, str]] = {
    "by position alone": (lambda a, /, b: a + b, "a", "These are positional-only"),
    "the rest of them": (lambda a, *rest: a, "rest", "These are positional-only"),
    "no such": (lambda a: a, "b", "Function does not take these args"),
    "nobody knows": (Unsigned(), "a", "Getting the signature of function .* failed. Pass {}_argnums instead"),
}


@pytest.mark.parametrize("option", ["static", "donate"])
@pytest.mark.parametrize("case", NO_NAMES)
def test_names_that_cannot_be_given(case: str, option: str) -> None:
    fun, name, text = NO_NAMES[case]
    with pytest.raises(ValueError, match=text.format(option)):
        polyax.jit(fun, **{option + "_argnames": name})


def test_masked_arrays() -> None:
    x = np.ma.array([1.0, 2.0], mask=[True, False])
    for f in (polyax.jit(lambda x: x), jnp.sin, jnp.asarray, polyax.grad(jnp.sum), polyax.device_put):
        with pytest.raises(ValueError, match="numpy masked arrays are not supported as direct inputs"):
            f(x)


def test_structs_like_arrays() -> None:
    like = polyax.ShapeDtypeStruct.like
    assert like(np.ones((2, 3))) == polyax.ShapeDtypeStruct((2, 3), "float32")
    assert like(1.0) == polyax.ShapeDtypeStruct((), "float32", weak_type=True)
    assert polyax.jit(lambda x: jnp.zeros(like(x).shape))(np.ones(3)).shape == (3,)
    placed = polyax.device_put(np.ones(2), polyax.devices()[0])
    assert like(placed).sharding == placed.sharding
    assert like(jnp.ones(2)).sharding is None
    assert like(placed).update(shape=(4,), sharding=None) == polyax.ShapeDtypeStruct((4,), "float32")
    assert like(1.0).update(size=3) == like(1.0)  # what structs don't have is left aside, as in JAX
    with pytest.raises(
        ValueError, match=r"sharding should be an instance of `jax\.sharding\.Sharding`, .* Got x of type"
    ):
        polyax.ShapeDtypeStruct((2,), "float32", sharding="x")
    with pytest.raises(NotImplementedError, match="references aren't supported"):
        like(polyax.new_ref(1.0))
    with pytest.raises(RuntimeError, match=r"Cannot reassign attributes \(shape\) of immutable ShapeDtypeStruct"):
        like(placed).shape = (3,)
    assert pickle.loads(pickle.dumps(like(np.ones(2)))) == copy.deepcopy(like(np.ones(2)))


def test_programs_show_their_variables() -> None:
    program = polyax.make_jaxpr(lambda x: x + np.arange(3.0))(1.0)
    assert (program.invars, program.outvars) == (program.jaxpr.invars, program.jaxpr.outvars)
    assert program.constvars == program.jaxpr.constvars


def test_values_that_are_not_known_yet_are_printed_as_in_the_source_documents(
    capsys: pytest.CaptureFixture[str],
) -> None:
    polyax.jit(lambda x: print("x =", x))(jnp.ones((3, 4)))
    assert capsys.readouterr().out == "x = Traced<ShapedArray(float32[3,4])>with<DynamicJaxprTrace>\n"


@polyax.tree_util.register_static
class Held(list):
    """A static node that can't be compared with others."""

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")


def test_static_parts_that_cannot_be_compared() -> None:
    f = polyax.jit(lambda x, n: 1, static_argnums=1)
    f(1, Held())
    with pytest.raises(ValueError, match="static arguments should be comparable using __eq__: 1 of type Held"):
        f(1, Held())
    g = polyax.jit(lambda x: 1)
    g(Held())
    with pytest.raises(ValueError, match=r"raised while checking equality of metadata fields of pytree\..* ambiguous"):
        g(Held())


@pytest.mark.parametrize(
    ("transform", "lead"),
    [
        (polyax.vmap, "Vectorized version of documented."),
        (polyax.grad, "Gradient of documented with respect to positional argument"),
        (polyax.make_jaxpr, "The jaxpr of documented."),
    ],
)
def test_what_a_function_says_follows_what_was_done_to_it(transform: Any, lead: str) -> None:
    def documented(x: Any) -> Any:
        """Says so."""

    text = transform(documented).__doc__
    assert text.startswith(lead) and text.endswith("\n\nOriginal documentation:\n\nSays so.")
    assert transform(lambda x: x).__doc__.endswith(".")


LARGE = 2**40


@pytest.mark.parametrize(
    "call",
    (
        lambda f: f(1, d={"b": [0, LARGE]}),
        lambda f: f.lower(1, d={"b": [0, LARGE]}),
        lambda f: polyax.make_jaxpr(f)(1, d={"b": [0, LARGE]}),
        lambda f: polyax.eval_shape(f, 1, d={"b": [0, LARGE]}),
    ),
)
def test_integers_that_are_too_large_are_named(call) -> None:
    f = polyax.jit(lambda x, d: x)
    f(1, d={"b": [0, 1]})
    with pytest.raises(OverflowError, match=rf"argument path is d\['b'\]\[1\]. Got <class 'int'> with value {LARGE}"):
        call(f)
    with polyax.enable_x64(True):
        call(f)
