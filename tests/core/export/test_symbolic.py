"""Programs with symbolic dimensions: shape rules give expressions, and what is exported runs for all sizes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import export, lax
from polyax.core import max_dim
from polyax.errors import InconclusiveDimensionOperation

Spec = polyax.ShapeDtypeStruct
_spec = importlib.util.spec_from_file_location("functions", Path(__file__).parent / "functions.py")
assert _spec is not None and _spec.loader is not None
functions = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(functions)
floats, integers = functions.floats, functions.integers


@pytest.mark.parametrize("name", functions.FUNCTIONS)
def test_an_exported_function_is_the_function(name: str) -> None:
    fun, shapes, args = functions.FUNCTIONS[name]
    scope = export.SymbolicScope()
    specs = [Spec(export.symbolic_shape(s, scope=scope), x.dtype) for s, x in zip(shapes, args, strict=True)]
    exported = export.export(polyax.jit(fun))(*specs)
    assert exported.uses_global_constants
    loaded = export.deserialize(exported.serialize())
    found, wanted = loaded.call(*args), fun(*map(jnp.asarray, args))
    assert polyax.tree.structure(found) == polyax.tree.structure(wanted)
    for a, b in zip(polyax.tree.leaves(found), polyax.tree.leaves(wanted), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def out_shapes(fun: Any, *shapes: str, constraints: Any = ()) -> str:
    scope = export.SymbolicScope(constraints)
    specs = [Spec(export.symbolic_shape(s, scope=scope), np.float32) for s in shapes]
    return ", ".join(map(str, export.export(polyax.jit(fun))(*specs).out_avals))


def test_shapes_of_results() -> None:
    """As JAX prints them."""
    assert out_shapes(lambda x: jnp.concatenate([x, x], axis=1), "a, b") == "float32[a,2*b]"
    assert out_shapes(lambda x: x.reshape((2, -1)), "b, 5, 6") == "float32[2,15*b]"
    assert out_shapes(lambda x: x[1:], "b + 1, 3") == "float32[b,3]"
    assert out_shapes(lambda x: x[::2], "b") == "float32[floordiv(b + 1, 2)]"
    assert out_shapes(lambda x: x[0:16], "b + 15") == "float32[16]"
    assert out_shapes(lambda x: x[: x.shape[1], :16], "a, b", constraints=["a >= b", "b >= 16"]) == "float32[b,16]"
    third = lambda x: lax.slice_in_dim(x, 0, x.shape[0] % 3)
    assert out_shapes(third, "b", constraints=["b >= mod(b, 3)"]) == "float32[mod(b, 3)]"
    assert out_shapes(lambda x: jnp.ones((max_dim(x.shape[0], 3),)), "b") == "float32[max(b, 3)]"
    assert out_shapes(lambda x: jnp.pad(x, (1, 2)), "b") == "float32[b + 3]"


def test_what_shapes_refuse() -> None:
    with pytest.raises(TypeError, match=r"add got incompatible shapes for broadcasting: \(v,\), \(4,\)"):
        out_shapes(jnp.add, "v", "4")
    with pytest.raises(TypeError, match=r"contracting dimensions to have the same shape, got \(4,\) and \(v,\)"):
        out_shapes(lambda x: jnp.matmul(x, x), "v, 4")
    with pytest.raises(InconclusiveDimensionOperation, match="'a [+] 1' >= 'b' is inconclusive"):
        out_shapes(lambda x: 0 if x.shape[0] + 1 >= x.shape[1] else 1, "a, b")
    with pytest.raises(InconclusiveDimensionOperation, match="Cannot divide evenly the sizes of shapes"):
        out_shapes(lambda x: x.reshape((2, -1)), "b")
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values of integer type"):
        out_shapes(lambda x: x.reshape(jnp.array(x.shape[0]) + 2), "b")


# --- calls ------------------------------------------------------------------------------------------------------------


def exported(shape: str, constraints: Any = ()) -> export.Exported:
    spec = Spec(export.symbolic_shape(shape, constraints=constraints), np.float32)
    return export.export(polyax.jit(lambda x: x))(spec)


@pytest.mark.parametrize(
    ("shape", "given", "match"),
    [
        ("b, b, 2*d", (3, 3, 5), "Division had remainder 1 when computing the value of 'd'"),
        ("b, b", (3, 4), r"Found inconsistency between dimension size args\[0\].shape\[1\] \(= 4\)"),
        ("b + 3", (3,), "Expected value >= 1 for dimension variable 'b'"),
        ("a, b", (3, 4, 5), r"Rank mismatch for args\[0\]: expected \(a, b\) and called with \(3, 4, 5\)"),
        ("a, 4", (3, 5), r"Shape mismatch for args\[0\].shape\[1\] \(expected same constant\)"),
    ],
)
def test_shapes_that_do_not_fit(shape: str, given: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        exported(shape).call(np.ones(given, np.float32))


def test_calls_are_checked() -> None:
    with pytest.raises(ValueError, match="do not match the symbolic shape constraint a >= 4. Expected 'a - 4' to be"):
        exported("a", ["a >= 4"]).call(floats(3))
    with pytest.raises(ValueError, match=r"Dtype mismatch for args\[0\]: expected float32 and called with int32"):
        exported("a").call(integers(3))
    with pytest.raises(ValueError, match="must have the same pytree structure as when the function '<lambda>' was"):
        exported("a").call(floats(3), floats(3))
    with pytest.raises(ValueError, match="Cannot solve for values of dimension variables {'a'}"):
        exported("a*a")
    top = polyax.jit(lambda k, x: lax.top_k(x, k)[0], static_argnums=0)
    with pytest.raises(KeyError, match="'k' that is not appearing in the shapes of the function arguments"):
        export.export(top)(export.symbolic_shape("k", constraints=["k <= 10"])[0], floats(4, 10))


def test_exported_functions_call_each_other() -> None:
    (b,) = export.symbolic_shape("b")
    inner = export.export(polyax.jit(lambda x: x.sum(0) / x.shape[0]))(Spec((2 * b, 3), np.float32))
    (n,) = export.symbolic_shape("n")
    outer = export.export(polyax.jit(lambda x: inner.call(x) + x.shape[0]))(Spec((4 * n, 3), np.float32))
    x = floats(8, 3)
    np.testing.assert_allclose(export.deserialize(outer.serialize()).call(x), x.mean(0) + 8, rtol=1e-5)
    with pytest.raises(ValueError, match="Division had remainder mod[(]n, 2[)]"):
        export.export(polyax.jit(inner.call))(Spec((n, 3), np.float32))


def test_derivatives() -> None:
    f = lambda x, i: (jnp.sin(x)[i].sum() / x.shape[0], i)
    (b,) = export.symbolic_shape("b")
    made = export.export(polyax.jit(f))(Spec((b, 3), np.float32), Spec((b,), np.int32))
    loaded = export.deserialize(made.serialize(vjp_order=2))
    args = floats(4, 3), integers(4)
    loss = lambda g: lambda x: g(x, args[1])[0]
    np.testing.assert_allclose(polyax.grad(loss(loaded.call))(args[0]), polyax.grad(loss(f))(args[0]), rtol=1e-5)
    second = lambda g: polyax.grad(lambda x: polyax.grad(loss(g))(x).sum())(args[0])
    np.testing.assert_allclose(second(loaded.call), second(f), rtol=1e-5)


def test_a_dimension_as_a_value() -> None:
    sums = lambda x, n: (5.0 + n, n - np.arange(5), x + n + jnp.sin(n))
    f = lambda x: (*sums(x, x.shape[0]), jnp.array(x.shape))
    made = export.export(polyax.jit(f))(Spec(export.symbolic_shape("b"), np.int32))
    assert str(made.out_avals[:2]) == "(ShapedArray(float32[], weak_type=True), ShapedArray(int32[5]))"
    found = made.call(np.ones(3, np.int32))
    assert found[0] == 8 and found[1].tolist() == [3, 2, 1, 0, -1] and np.allclose(found[2], 4.14112)
    assert found[3].tolist() == [3]
    (b,) = export.symbolic_shape("b")
    with pytest.raises(NotImplementedError, match="the size of the dimension b isn't known here"):
        jnp.sin(b)


def test_sizes_that_only_some_values_allow() -> None:
    """What can't be told while exporting is found out in the call."""
    halves = polyax.jit(lambda x: x.reshape((2, x.shape[0] // 2)))
    made = export.export(halves)(Spec(export.symbolic_shape("b"), np.float32))
    assert made.call(floats(4)).shape == (2, 2)
    with pytest.raises(ValueError, match="can't be run for b = 5: reshape total size must be unchanged"):
        made.call(floats(5))


def test_refusals_with_symbolic_sizes() -> None:
    made = lambda f: export.export(polyax.jit(f))(Spec(export.symbolic_shape("b"), np.float32))
    for kind, match, f in (
        (ValueError, "has step == 0", lambda x: jnp.arange(0, x.shape[0], 0)),
        (
            ValueError,
            "must be either dimension expressions or integers: start=0.0",
            lambda x: jnp.arange(0.0, x.shape[0]),
        ),
        (
            InconclusiveDimensionOperation,
            "the step .b - 2. must be",
            lambda x: jnp.arange(0, x.shape[0], x.shape[0] - 2),
        ),
        (InconclusiveDimensionOperation, "the stop .b - 2. must be resolved", lambda x: x[: x.shape[0] - 2]),
        (ValueError, "'reflect' or 'symmetric' .* axis size .= b.", lambda x: jnp.pad(x, 1, mode="reflect")),
        (ValueError, "non-constant `repeats`", lambda x: jnp.repeat(x, x.shape[0], total_repeat_length=8)),
        (ValueError, "symbolic number of sections", lambda x: jnp.split(x, x.shape[0] // 2)),
        (NotImplementedError, "over axis of non-constant size: b", lambda x: lax.associative_scan(jnp.add, x)),
    ):
        with pytest.raises(kind, match=match):
            made(f)
    assert out_shapes(lambda x: lax.slice_in_dim(x, 0, x.shape[0], 2), "b") == "float32[floordiv(b - 1, 2) + 1]"


NUMBERS = np.float32([4, 3, 2, 1, 0])
ORDERED = {
    "median": (jnp.median, np.median),
    "quantile": (lambda x: jnp.quantile(x, 0.3), lambda x: np.quantile(x, 0.3)),
    "nanquantile": (lambda x: jnp.nanquantile(x, 0.2, method="lower"), lambda x: 0.0),
    "insert": (lambda x: jnp.insert(x, 2, 9.0), lambda x: np.insert(x, 2, 9.0)),
    "insert from the end": (lambda x: jnp.insert(x, np.array([-1, 9]), 7.0), lambda x: np.insert(x, [-1, 5], 7.0)),
}


@pytest.mark.parametrize("name", ORDERED)
def test_places_in_symbolic_dimensions(name: str) -> None:
    fun, wanted = ORDERED[name]
    made = export.export(polyax.jit(fun))(Spec(export.symbolic_shape("n"), np.float32))
    np.testing.assert_allclose(made.call(NUMBERS), wanted(NUMBERS), rtol=1e-6)
