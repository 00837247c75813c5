"""Derivatives as users ask for them: auxiliary outputs, complex and integer values, pytrees; and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import float0

Z = 1.0 + 2.0j
ZS = np.array([1 + 2j, 3 - 1j], np.complex64)
ON_HOST = polyax.devices("reference")[0]


@pytest.fixture(autouse=True)
def reference() -> Any:
    """Backends may lack complex types; the rules are the same everywhere."""
    with polyax.default_device(ON_HOST):
        yield


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5)


# --- complex values -----------------------------------------------------------------------------------------------


def test_holomorphic_functions_have_complex_derivatives() -> None:
    close(polyax.grad(lambda z: z**3, holomorphic=True)(Z), 3 * Z**2)
    close(polyax.grad(jnp.exp, holomorphic=True)(Z), np.exp(Z))
    value, slope = polyax.value_and_grad(jnp.sin, holomorphic=True)(Z)
    close(value, np.sin(Z)), close(slope, np.cos(Z))
    close(polyax.jacfwd(lambda z: z**2, holomorphic=True)(ZS), np.diag(2 * ZS))
    close(polyax.jacrev(lambda z: z**2, holomorphic=True)(ZS), np.diag(2 * ZS))
    close(polyax.hessian(lambda z: (z**3).sum(), holomorphic=True)(ZS), np.diag(6 * ZS))


def directional(f: Any, z: complex, direction: complex, eps: float = 1e-3) -> complex:
    """Central difference, in the precision of NumPy."""
    return (f(z + eps * direction) - f(z - eps * direction)) / (2 * eps)


@pytest.mark.parametrize("name", ["abs", "real", "imag", "angle", "conj"])
def test_pullbacks_are_those_of_functions_of_real_and_imaginary_parts(name: str) -> None:
    """For u + iv = f(x + iy) the pullback of 1 is du/dx - i du/dy."""
    ours, theirs = getattr(jnp, name), getattr(np, name)
    out, pullback = polyax.vjp(ours, Z)
    (ct,) = pullback(np.ones((), out.dtype))
    want = directional(theirs, Z, 1).real - 1j * directional(theirs, Z, 1j).real
    np.testing.assert_allclose(ct, want, rtol=1e-4, atol=1e-5)


def test_gradients_of_real_functions_of_complex_values() -> None:
    """As in JAX, the gradient is the conjugate of the direction of steepest ascent."""
    close(polyax.grad(lambda z: jnp.abs(z) ** 2)(Z), 2 * np.conj(Z))
    close(polyax.jacrev(lambda z: jnp.abs(z) ** 2)(ZS), np.diag(2 * np.conj(ZS)))


def test_real_functions_through_complex_values() -> None:
    f = lambda x: jnp.abs(jnp.exp(1j * x) * x) ** 2  # = x**2
    close(polyax.grad(f)(3.0), 6.0)
    close(polyax.grad(polyax.grad(f))(3.0), 2.0)
    close(polyax.jacfwd(lambda x: x * 1j)(2.0), 1j)
    primal, tangent = polyax.jvp(lambda z: z * z, (Z,), (1j,))
    close(primal, Z**2), close(tangent, 2j * Z)


def test_linear_functions_of_complex_values() -> None:
    (ct,) = polyax.linear_transpose(lambda z: z * (2 + 1j), Z)(Z)
    close(ct, Z * (2 + 1j))


# --- integers -----------------------------------------------------------------------------------------------------


def test_integers_have_float0_tangents() -> None:
    g = polyax.grad(lambda x: x * 2.0, allow_int=True)(3)
    assert g.dtype == float0 and g.shape == ()
    tree = polyax.grad(lambda t: (t["n"] * t["x"]).sum(), allow_int=True)({"n": np.arange(2), "x": np.ones(2)})
    assert tree["n"].dtype == float0 and tree["n"].shape == (2,) and tree["x"].tolist() == [0, 1]
    ct_x, ct_n = polyax.vjp(lambda x, n: x * n, 2.0, 3)[1](1.0)
    assert ct_x.item() == 3.0 and ct_n.dtype == float0


def test_integer_results_take_float0_cotangents() -> None:
    out, pullback = polyax.vjp(lambda x: (x, jnp.int32(x)), 2.0)
    assert pullback((1.0, np.zeros((), float0)))[0] == 1.0
    assert pullback((1.0, 7))[0] == 1.0  # whatever is given for an integer, as in JAX
    _, tangents = polyax.jvp(lambda x: (x, jnp.int32(x)), (2.0,), (1.0,))
    assert tangents[1].dtype == float0
    primal, tangent = polyax.jvp(lambda n: n * 2.0, (3,), (np.zeros((), float0),))
    assert (primal, tangent) == (6.0, 0.0)


def test_jacobians_with_respect_to_integers() -> None:
    by_x, by_n = polyax.jacrev(lambda x, n: x * n, argnums=(0, 1), allow_int=True)(jnp.arange(2.0), 3)
    close(by_x, 3 * np.eye(2))
    assert by_n.dtype == np.int32 and by_n.tolist() == [0, 0]  # rows of it, where grad has float0


def test_linear_functions_of_integers() -> None:
    assert polyax.linear_transpose(lambda n: n * 2, 1)(5)[0].tolist() == 10


# --- auxiliary outputs ---------------------------------------------------------------------------------------------


def with_aux(x: Any) -> Any:
    return (x**3).sum(), {"twice": 2 * x, "none": None}


def test_auxiliary_outputs_everywhere() -> None:
    x = jnp.arange(2.0)
    found = [
        polyax.grad(with_aux, has_aux=True)(x)[1],
        polyax.value_and_grad(with_aux, has_aux=True)(x)[0][1],
        polyax.jvp(with_aux, (x,), (x,), has_aux=True)[2],
        polyax.vjp(with_aux, x, has_aux=True)[2],
        polyax.linearize(with_aux, x, has_aux=True)[2],
        polyax.jacfwd(with_aux, has_aux=True)(x)[1],
        polyax.jacrev(with_aux, has_aux=True)(x)[1],
        polyax.hessian(with_aux, has_aux=True)(x)[1],
    ]
    for aux in found:
        assert set(aux) == {"twice", "none"} and aux["none"] is None and aux["twice"].tolist() == [0, 2]
    close(polyax.hessian(with_aux, has_aux=True)(x)[0], np.diag([0, 6]))
    assert polyax.grad(lambda x: (x * x, "text"), has_aux=True)(2.0)[1] == "text"


def test_auxiliary_outputs_carry_outer_derivatives() -> None:
    def outer(x: Any, derive: Any) -> Any:
        return derive(lambda y: (y * x, x**2), x)

    by_grad = lambda f, x: polyax.grad(f, has_aux=True)(1.0)[1]
    by_jvp = lambda f, x: polyax.jvp(f, (x,), (x,), has_aux=True)[2]
    for derive in (by_grad, by_jvp):
        close(polyax.grad(lambda x, d=derive: outer(x, d))(3.0), 6.0)
        close(polyax.jvp(lambda x, d=derive: outer(x, d), (3.0,), (1.0,))[1], 6.0)


def test_numbers_that_pass_through_are_arrays() -> None:
    value, slope = polyax.value_and_grad(lambda x: x)(3.0)
    primal, tangent = polyax.jvp(lambda x: x, (3.0,), (1.0,))
    _, pullback, aux = polyax.vjp(lambda x: (x, x), 3.0, has_aux=True)
    for x in (value, slope, primal, tangent, aux, *pullback(1.0)):
        assert isinstance(x, polyax.Array) and x.weak_type and x.shape == ()


# --- pytrees ------------------------------------------------------------------------------------------------------


def trees(p: Any, q: Any) -> Any:
    return {"o": p["a"] * q, "s": (q,)}


@pytest.mark.parametrize("jacobian", [polyax.jacfwd, polyax.jacrev])
def test_jacobians_of_pytrees(jacobian: Any) -> None:
    out = jacobian(trees, argnums=(0, 1))({"a": jnp.arange(2.0)}, 3.0)
    close(out["o"][0]["a"], 3 * np.eye(2)), close(out["o"][1], [0, 1])
    close(out["s"][0][0]["a"], [0, 0]), close(out["s"][0][1], 1)


def test_hessians_of_pytrees() -> None:
    out = polyax.hessian(lambda p: (p["a"] ** 2 * p["b"]).sum())({"a": jnp.arange(2.0), "b": 3.0})
    close(out["a"]["a"], 6 * np.eye(2)), close(out["a"]["b"], [0, 2])
    close(out["b"]["a"], [0, 2]), close(out["b"]["b"], 0)


def test_linear_functions_of_pytrees() -> None:
    struct = {"a": polyax.ShapeDtypeStruct((2,), "float32"), "b": polyax.ShapeDtypeStruct((), "float32")}
    (ct,) = polyax.linear_transpose(lambda t: t["a"] * 2 + t["b"], struct)(jnp.ones(2))
    close(ct["a"], [2, 2]), close(ct["b"], 2)


# --- two passes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jitted", [True, False])
def test_forward_and_backward_pass_apart(jitted: bool) -> None:
    fwd, bwd = polyax.fwd_and_bwd(lambda x, y: (jnp.sin(x) * y, x), argnums=(0, 1), has_aux=True, jitted=jitted)
    out, residuals, aux = fwd(2.0, 3.0)
    close(out, np.sin(2) * 3), close(aux, 2)
    close(bwd(residuals, 1.0), [np.cos(2) * 3, np.sin(2)])
    assert polyax.tree.leaves(residuals)
    fwd, bwd = polyax.fwd_and_bwd(lambda x, y: x * y, argnums=1, jitted=jitted)
    close(bwd(fwd(2.0, 3.0)[1], 1.0), 2)


def test_pullbacks_are_pytrees() -> None:
    pullbacks = polyax.vmap(lambda x: polyax.vjp(jnp.sin, x)[1])(jnp.arange(3.0))
    (cts,) = polyax.vmap(lambda f, ct: f(ct))(pullbacks, jnp.ones(3))
    close(cts, np.cos(np.arange(3)))


# --- what is refused ----------------------------------------------------------------------------------------------

grad, vjp, jvp = polyax.grad, polyax.vjp, polyax.jvp
two = jnp.ones(2)
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "complex output": (lambda: grad(lambda z: z * z)(Z), TypeError, "requires real-valued outputs .* got complex64"),
    "real output": (lambda: grad(jnp.abs, holomorphic=True)(Z), TypeError, "outputs with complex dtype, but got float"),
    "real input": (lambda: grad(jnp.sin, holomorphic=True)(1.0), TypeError, "inputs with complex dtype, but got float"),
    "complex by jacfwd": (lambda: polyax.jacfwd(jnp.sin)(ZS), TypeError, "jacfwd requires real-valued inputs"),
    "complex by jacrev": (lambda: polyax.jacrev(jnp.sin)(ZS), TypeError, "jacrev requires real-valued outputs"),
    "integer": (lambda: grad(jnp.sin)(3), TypeError, r"set allow_int to True. The input is ~int32\[\]"),
    "integer by jacfwd": (lambda: polyax.jacfwd(lambda x: x * 1.0)(3), TypeError, "real-valued inputs .* got int32"),
    "integer output": (lambda: grad(lambda x: 1)(1.0), TypeError, "functions with integer outputs"),
    "no array": (lambda: grad(lambda x: 1.0)("a"), TypeError, "is not a valid JAX type: an argument of grad is 'a'"),
    "vector": (lambda: grad(lambda x: x)(two), TypeError, r"Output had shape: \(2,\)"),
    "pair": (lambda: grad(lambda x: (x, x))(1.0), TypeError, "pytree of structure"),
    "no pair": (lambda: grad(lambda x: x, has_aux=True)(1.0), TypeError, "return a two-element tuple"),
    "triple": (lambda: grad(lambda x: (x, 1, 2), has_aux=True)(1.0), TypeError, "a tuple of length 3"),
    "argument that isn't there": (lambda: grad(jnp.sin, argnums=1)(1.0), TypeError, "at least 2 positional"),
    "argnums by name": (lambda: grad(jnp.sin, argnums="x"), TypeError, "must be an integer or a sequence"),
    "axes": (lambda: vjp(jnp.sin, 1.0, reduce_axes=("i",)), NotImplementedError, "reduce_axes argument to vjp"),
    "cotangent shape": (lambda: vjp(jnp.sin, 1.0)[1](two), ValueError, r"got float32\[2\], but expected float32\[\]"),
    "cotangent dtype": (lambda: vjp(jnp.sin, 1.0)[1](1j), ValueError, r"got complex64\[\], but expected float32\[\]"),
    "cotangent tree": (lambda: vjp(jnp.sin, 1.0)[1]([1.0]), ValueError, "<class 'list'> against a pytree leaf"),
    "two cotangents": (
        lambda: vjp(jnp.sin, 1.0)[1](1.0, 1.0), TypeError, "applied to sin was called with 2 arguments",
    ),
    "tangent tree": (lambda: jvp(jnp.sin, (1.0,), (1.0, 2.0)), TypeError, "must have the same tree structure"),
    "tangent alone": (lambda: jvp(jnp.sin, 1.0, 1.0), TypeError, "must be tuples or lists; found float and float"),
    "tangent shape": (lambda: jvp(jnp.sin, (1.0,), (two,)), ValueError, "different primal and tangent shapes"),
    "tangent dtype": (lambda: jvp(jnp.sin, (1.0,), (1j,)), TypeError, r"tangent dtype float32, but got .*complex64"),
    "integer tangent": (lambda: jvp(lambda n: n, (3,), (1,)), TypeError, "expected tangent dtype float0"),
    "linearised": (lambda: polyax.linearize(jnp.sin, 1.0)[1](two), ValueError, "inconsistent with the original primal"),
    "not linear": (lambda: polyax.linear_transpose(lambda x: x * x, 1.0)(1.0), TypeError, "is not linear in it"),
    "mixed": (lambda: polyax.linear_transpose(lambda n: n * 1.0, 1)(1.0), TypeError, r"int32\[\] -> ~float32\[\]"),
    "transposed shape": (
        lambda: polyax.linear_transpose(lambda x: x, 1.0)(two), TypeError, r"expected ~float32\[\] but got float32\[2",
    ),
    "no function": (lambda: grad(3), TypeError, "Expected a callable value"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    call, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        call()


def test_linear_functions_are_pytrees() -> None:
    """They go out of compiled functions and into others; of their program, only what is closed over changes."""
    f = lambda x: jnp.sin(x) * 2.0
    made = [polyax.linearize(f, 1.0)[1], polyax.linear_transpose(lambda x: ONE_HALF * x, 1.0), vjp(f, 1.0)[1]]
    called = [float(polyax.tree.leaves(polyax.jit(lambda f, x: f(x))(g, 3.0))[0]) for g in made]
    np.testing.assert_allclose(called, [6 * np.cos(1), 1.5, 6 * np.cos(1)], rtol=1e-6)
    pushed = polyax.jit(lambda x: polyax.linearize(f, x)[1])
    np.testing.assert_allclose([pushed(1.0)(3.0), pushed(0.0)(3.0)], [6 * np.cos(1), 6], rtol=1e-6)
    assert "mul" in str(made[0].func.args[0])


ONE_HALF = np.array(0.5, np.float32)


# --- programs without running -------------------------------------------------------------------------------------


def test_types_of_values() -> None:
    assert str(polyax.typeof(1.0)) == "~float32[]" and polyax.typeof(1.0).weak_type
    assert str(polyax.typeof(polyax.ShapeDtypeStruct((2,), "int8", weak_type=True))) == "~int8[2]"
    seen = []
    polyax.jit(lambda x: seen.append(polyax.typeof(x)) or x)(np.ones((2, 3), np.float32))
    assert str(seen[0]) == "float32[2,3]"
    with pytest.raises(TypeError, match="'a' of type <class 'str'> is not a valid JAX type"):
        polyax.typeof("a")


def test_programs_with_static_arguments_shapes_and_axes() -> None:
    closed = polyax.make_jaxpr(lambda x, n: x * n, static_argnums=1)(1.0, 3)
    assert len(closed.jaxpr.invars) == 1
    closed, shape = polyax.make_jaxpr(lambda x: {"a": x + 1}, return_shape=True)(1.0)
    assert shape["a"].shape == () and shape["a"].dtype == np.float32
    closed = polyax.make_jaxpr(lambda x: polyax.lax.psum(x, "i"), axis_env=[("i", 4)])(1.0)
    assert [e.primitive.name for e in closed.eqns] == ["psum"]


def test_weak_types_of_derivatives() -> None:
    one, two = (lambda x: x), (lambda x: x * np.float32(2))
    for transform, weak in ((polyax.grad, True), (polyax.jacfwd, False), (polyax.jacrev, True)):
        assert transform(one)(1.0).weak_type
        assert transform(two)(1.0).weak_type == weak
    assert polyax.linear_transpose(lambda x: 2 * x, 1.0)(1.0)[0].weak_type
    with polyax.default_device(polyax.devices("reference")[0]):
        assert polyax.grad(jnp.sin, holomorphic=True)(1 + 2j).weak_type


def test_cotangents_and_tangents_of_another_kind() -> None:
    with polyax.default_device(polyax.devices("reference")[0]):
        for fun, cotangent in ((lambda x: 1j * x, 1.0), (lambda x: x, 1j)):
            with pytest.raises(TypeError, match="cotangent type does not match function output"):
                polyax.linear_transpose(fun, 1.0)(cotangent)
    with pytest.raises(TypeError, match="to jax.jvp must have the same tree structure"):
        polyax.jvp(lambda x: x, (1.0,), [1.0])


def test_cotangents_are_as_weakly_typed_as_results():
    weak = lambda x: polyax.typeof(x).weak_type
    assert weak(polyax.grad(lambda x: x * 2.0)(3.0)) and weak(polyax.grad(polyax.grad(jnp.sin))(3.0))
    assert weak(polyax.grad(jnp.sin, holomorphic=True)(3.0 + 4.0j))
    assert not weak(polyax.grad(lambda x: x * 2.0)(jnp.float32(3.0)))


def test_cotangents_of_weakly_typed_arguments() -> None:
    given = []

    @polyax.custom_vjp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, g: given.append(g) or (g * jnp.cos(x),))
    _, pullback = polyax.vjp(lambda x, y: f(x), 3.0, 2.0)
    assert all(ct.weak_type for ct in (*pullback(1.0), *given))
    assert polyax.jit(polyax.grad(f))(3.0).weak_type


def test_pullbacks_show_their_residuals() -> None:
    w, x = jnp.eye(2), jnp.ones((3, 2))
    y, pullback = polyax.vjp(lambda w, x, b: jnp.tanh(x @ w) + b["bias"], w, x, {"bias": jnp.ones(2)})
    assert pullback.args_res[0] is w and pullback.args_res[1] is x
    assert repr(pullback.args_res[2]) == "(NotNeeded(),)"
    assert all(r.shape == y.shape for r in pullback.opaque_residuals)
    assert polyax.tree.leaves(pullback) == [w, x, *pullback.opaque_residuals]
    before = pullback(y)
    pullback.args_res[0] = 2 * w
    after = pullback(y)
    np.testing.assert_allclose(after[1], 2 * before[1])
    np.testing.assert_allclose(after[0], before[0])


def test_pullbacks_leave_jit_with_other_residuals() -> None:
    pullback = polyax.jit(lambda x, y: polyax.vjp(lambda x, y: x * y, x, y)[1])(jnp.float32(2), jnp.float32(3))
    assert [float(ct) for ct in pullback(1.0)] == [3.0, 2.0]
    doubled = polyax.tree.map(lambda r: 2 * r, pullback)
    assert [float(ct) for ct in doubled(1.0)] == [6.0, 4.0]


def test_pullbacks_take_one_cotangent() -> None:
    pullback = polyax.vjp(lambda x: (x, x), 1.0)[1]
    with pytest.raises(TypeError, match=r"called with 2 arguments.*a single argument.*here PyTreeDef\(\(\*, \*\)\)"):
        pullback(1.0, 1.0)
    assert pullback((1.0, 2.0)) == (3.0,)


@pytest.mark.parametrize("dtype", ["int32", "int8", "bool"])
def test_forward_jacobians_of_integers_are_zeros(dtype):
    for fun in (polyax.jacfwd(lambda x: x.astype(dtype)), polyax.jit(polyax.jacfwd(lambda x: x.astype(dtype)))):
        found = fun(jnp.arange(3.0))
        assert found.shape == (3, 3) and found.dtype == dtype and not found.any()
