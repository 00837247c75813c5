"""Shardings that users ask for: trees, open dimensions, other meshes of the same devices, and what is refused.

Run by ``test_jit_mesh.py``.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.meshes.sharding import DuplicateSpecError, IndivisibleError
from polyax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

P = PartitionSpec
DEVICES = polyax.devices()
if len(DEVICES) < 8:
    pytest.skip("run by test_jit_mesh.py, with eight devices", allow_module_level=True)
GRID = Mesh(np.array(DEVICES).reshape(4, 2), ("x", "y"))
ROW = Mesh(np.array(DEVICES), ("i",))
HALF_EXPLICIT = Mesh(GRID.devices, ("x", "y"), (AxisType.Explicit, AxisType.Auto))
X = np.arange(64, dtype=np.float32).reshape(8, 8) / 7
OPEN = P.UNCONSTRAINED


def on(mesh, *spec):
    return NamedSharding(mesh, P(*spec))


def put(mesh, *spec):
    return polyax.device_put(X, on(mesh, *spec))


def constrained(*spec, mesh=GRID):
    return lambda x: lax.with_sharding_constraint(x, on(mesh, *spec))


def test_an_inner_program_may_ask_for_another_mesh_of_the_same_devices():
    inner = polyax.jit(lambda x: x * 2, in_shardings=on(ROW, "i"))
    got = polyax.jit(lambda x: inner(x) + 1, in_shardings=on(GRID, "x"))(X)
    assert got.sharding.spec == P(("x", "y"))
    np.testing.assert_allclose(got, X * 2 + 1)


def test_open_dimensions_stay_as_they_are():
    for run in (lambda f: f, polyax.jit):
        assert run(constrained(OPEN, "y"))(put(GRID, "x")).sharding.spec == P("x", "y")
    assert constrained(OPEN, "x")(put(GRID, "x")).sharding.spec == P(None, "x")
    assert constrained(OPEN, "x")(X).sharding.spec == P(None, "x")
    mapped = polyax.vmap(polyax.jit(lambda x: x * 2, in_shardings=on(ROW, "i")))
    assert mapped(polyax.device_put(X[None], on(ROW, None, "i"))).sharding.spec == P(None, "i")


def test_constraints_leave_explicit_axes_to_types():
    x = put(HALF_EXPLICIT, "x")
    for spec, wanted in [((), P("x")), (("y",), P(("x", "y"))), ((None, "y"), P("x", "y")), ((OPEN, "y"), P("x", "y"))]:
        got = polyax.jit(constrained(*spec, mesh=HALF_EXPLICIT))(x)
        assert got.sharding.spec == wanted and str(polyax.typeof(got)) == "float32[8@x,8]"
        np.testing.assert_array_equal(got, X)
    with pytest.raises(
        ValueError, match=r"can only refer to Auto axes .*spec=P\('x', 'y'\).*float32\[8@x,8\].*`polyax.reshard`"
    ):
        polyax.jit(constrained("x", "y", mesh=HALF_EXPLICIT))(x)


def test_arguments_may_be_given_as_a_list():
    got = polyax.jit(lambda a, b: a + b, in_shardings=[on(ROW, "i"), on(ROW)])(X, X)
    assert got.sharding.spec == P("i")


WHO = r"One of pjit {} is incompatible with its sharding annotation NamedSharding\(mesh=Mesh\('x': 4, 'y': 2"
DIVIDED = r"array axis 0 is partitioned 4 times, but the dimension size is 5 .*Pad it to a multiple of 4"
RANK = r"only valid for values of rank at least 1, but was applied to a value of rank 0. For scalars .* P\(\)"


def test_a_constraint_on_a_mesh_without_devices_keeps_those_of_the_array():
    f = lambda x: constrained("x", mesh=GRID.abstract_mesh)(x) * 2
    for run in (f, polyax.jit(f)):
        got = run(put(GRID, "y"))
        assert got.sharding == on(GRID, "x")
        np.testing.assert_array_equal(got, 2 * X)


Pair = namedtuple("Pair", "a b")


def in_mesh(mesh, fun):
    with polyax.set_mesh(mesh):
        return fun()


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (IndivisibleError, WHO.format(r"arguments with pytree key path d\['k'\]") + ".*" + DIVIDED,
         lambda: polyax.jit(lambda d: d, in_shardings=on(GRID, "x"))({"k": X[:5]})),
        (IndivisibleError, WHO.format(r"outputs with pytree key path result\[1\]") + ".*" + DIVIDED,
         lambda: polyax.jit(lambda a: (a, a[:5]), out_shardings=on(GRID, "x"))(X)),
        (ValueError, WHO.format("arguments with pytree key path s") + ".*" + RANK,
         lambda: polyax.jit(lambda s: s, in_shardings=on(GRID, "x"))(1.0)),
        (IndivisibleError, r"One of device_put args, of type float32\[5,8\],.*" + DIVIDED,
         lambda: polyax.device_put(X[:5], on(GRID, "x"))),
        (ValueError, "One of device_put args, of type float32.*" + RANK, lambda: polyax.device_put(1.0, on(GRID, "x"))),
        (IndivisibleError, DIVIDED, lambda: constrained("x")(X[:5])),
        (ValueError, r"got sharding None which is not allowed.*float32\[8,8\]",
         lambda: lax.with_sharding_constraint((X, X), (on(GRID, "x"), None))),
        (ValueError, r"Unconstrained dims are not allowed when passed to in_shardings.*x of type float32\[8,8\]",
         lambda: in_mesh(GRID, lambda: polyax.jit(lambda x: x, in_shardings=P(OPEN, "y"))(X))),
        (ValueError, r"Unconstrained dims are not allowed when passed to out_shardings.*result of type float32\[8,8\]",
         lambda: in_mesh(GRID, lambda: polyax.jit(lambda x: x, out_shardings=P(OPEN, "y"))(X))),
        (ValueError, "Unconstrained dims are not allowed when passed to device_put",
         lambda: polyax.device_put(X, on(GRID, OPEN, "y"))),
        (TypeError, "out_shardings leaf specifications are expected to be PartitionSpec instances or None, but got i",
         lambda: polyax.jit(lambda x: x, out_shardings=("i",))(X)),
        (ValueError, r"different numbers of pytree children at key path\n    pjit in_shardings\[0\]",
         lambda: polyax.jit(lambda d: d, in_shardings=({"a": on(ROW)},))({"a": X, "b": X})),
        (TypeError, "NamedSharding needs a Mesh or an AbstractMesh, got 'x' of type str", lambda: on("x", "x")),
        (ValueError, r"Resource axis: z of P\('z',\) is not found in mesh: \('x', 'y'\). Name one of these",
         lambda: on(GRID, "z")),
        (ValueError, r"pjit in_shardings is not a tuple: got <class '.*Pair'> instead.*wrapped in a singleton tuple",
         lambda: polyax.jit(lambda p: p, in_shardings=Pair(None, None))(Pair(X, X))),
        (DuplicateSpecError, r"A single out_shardings spec.* but P\('x', 'x'\) has duplicate entries for `x`",
         lambda: polyax.jit(lambda x: x, out_shardings=P("x", "x"))),
        (DuplicateSpecError, r"A single in_shardings spec.* but P\('x', 'x'\) has duplicate entries for `x`",
         lambda: in_mesh(GRID, lambda: polyax.jit(lambda x: x, in_shardings=P("x", "x"))(X))),
        (ValueError, r"Target sharding contains a `jax\.sharding\.AbstractMesh` .* Got <class 'numpy.*float32\[8,8\]",
         lambda: constrained("x", mesh=GRID.abstract_mesh)(X)),
        (TypeError, "The sharding on the input must be a `NamedSharding`",
         lambda: constrained("x", mesh=GRID.abstract_mesh)(jnp.ones((8, 8)))),
        (ValueError, r"Mesh shape of the input \(\('i', 8\),\) does not match .* \(\('x', 4\), \('y', 2\)\)",
         lambda: constrained("x", mesh=GRID.abstract_mesh)(put(ROW, "i"))),
    ],
)  # fmt: skip
def test_what_is_refused(error, text, call):
    with pytest.raises(error, match="(?s)" + text):
        call()
