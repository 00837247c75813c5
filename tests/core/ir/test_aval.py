"""Types of what users pass: NumPy's arrays with masks are refused, and cost nobody else anything."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.core import ShapedArray
from polyax.sharding import AbstractMesh, AxisType, NamedSharding
from polyax.sharding import PartitionSpec as P
from support.process import output

MESH = AbstractMesh((4, 2), ("x", "y"), (AxisType.Explicit,) * 2)


@pytest.mark.parametrize("use", [jnp.sin, jnp.asarray, polyax.jit(lambda x: x + 1)])
def test_masked_arrays_are_refused(use):
    with pytest.raises(ValueError, match=r"masked arrays are not supported .* arr.filled\(\)"):
        use(np.ma.masked_array([1.0, 2.0], mask=[True, False]))


def test_numbers_of_numpy_do_not_load_its_masked_arrays():
    code = """
        import sys, numpy as np, polyax.numpy as jnp
        print(np.float32(0.5) * jnp.ones(2), jnp.add(1, np.float64(2)), "numpy.ma" in sys.modules)
    """
    assert output(code, POLYAX_PLATFORMS="reference") == "[0.5 0.5] 3.0 False"


def test_texts_mark_weak_types():
    weak = polyax.typeof(1.0)
    assert (f"{weak}", str(weak), weak.str_short()) == ("~float32[]", "~float32[]", "float32[]")
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{weak:>30}"


def test_another_shape_stays_cut():
    rows = ShapedArray((8, 8), np.dtype("float32"), sharding=NamedSharding(MESH, P("x")))
    for shape, text in {(16, 8): "[16@x,8]", (16,): "[16@x]", (8, 8, 3): "[8@x,8,3]", (): "[8@x,8]"}.items():
        assert str(rows.update(shape=shape) if shape else rows.update(weak_type=False)) == f"float32{text}"
    assert str(rows.update(shape=(3, 8), sharding=None)) == "float32[3,8]"
    with pytest.raises(ValueError, match=r"array axis 0 is partitioned 4 times, but does not evenly divide .* size 3"):
        rows.update(shape=(3, 8))
    with pytest.raises(ValueError, match="only valid for values of rank at least 2"):
        rows.update(shape=(8,), sharding=NamedSharding(MESH, P("x", "y")))


def test_specs_may_say_of_further_dimensions_that_they_are_not_cut():
    assert str(ShapedArray((4,), np.dtype("float32"), sharding=NamedSharding(MESH, P("x", None)))) == "float32[4@x]"
    with polyax.sharding.use_abstract_mesh(MESH):
        cut = polyax.eval_shape(lambda x: polyax.reshard(x, P("x", None, None)), np.ones(8, np.float32))
    assert cut.sharding.spec == P("x")


def test_what_a_value_is_along_manual_axes():
    varying = polyax.sharding.ManualAxisType(varying=frozenset({"x"}))
    manual = NamedSharding(MESH.update(axis_types=(AxisType.Manual,) * 2), P())
    assert str(ShapedArray((4,), np.dtype("float32"), sharding=manual, manual_axis_type=varying)) == "float32[4]{V:x}"
    struct = polyax.ShapeDtypeStruct((4,), "float32", manual_axis_type=varying)
    assert struct.manual_axis_type == varying and struct.update(shape=(2,)).manual_axis_type == varying
    assert struct != polyax.ShapeDtypeStruct((4,), "float32") and "manual_axis_type=ManualAxisType(" in repr(struct)
    seen = []
    mesh = polyax.make_mesh((1,), ("x",), (AxisType.Auto,))

    @polyax.jit
    @polyax.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    def look(x):
        seen.append(polyax.ShapeDtypeStruct.like(x).manual_axis_type)
        return x

    look(np.ones(4, np.float32))
    assert seen == [varying]


def test_types_tell_of_no_devices():
    mesh = polyax.make_mesh((1,), ("x",))
    with pytest.raises(ValueError, match="Mesh of an aval must be an AbstractMesh. Got Mesh"):
        ShapedArray((4,), np.dtype("float32"), sharding=NamedSharding(mesh, P("x")))
