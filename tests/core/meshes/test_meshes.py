"""Meshes, specs and shardings, without devices: a mesh only passes them on."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import polyax
from polyax.meshes.current import mesh_for_specs
from polyax.meshes.sharding import DuplicateSpecError, IndivisibleError, bounds
from polyax.meshes.translate import cuts_on
from polyax.sharding import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    GSPMDSharding,
    ManualAxisType,
    Mesh,
    NamedSharding,
    PositionalSharding,
    get_abstract_mesh,
    get_mesh,
    make_single_device_sharding,
    set_mesh,
    use_abstract_mesh,
)
from polyax.sharding import PartitionSpec as P


@dataclass(frozen=True)
class Chip:
    """A device, as far as a mesh looks at it."""

    id: int
    process_index: int = 0
    platform: str = "cpu"
    device_kind: str = "cpu"
    is_addressable: bool = True


CHIPS = [Chip(n) for n in range(8)]
MESH = Mesh(np.array(CHIPS).reshape(4, 2), ("x", "y"))


def test_equal_meshes_are_one_object() -> None:
    again = Mesh(np.array(CHIPS).reshape(4, 2), ("x", "y"))
    assert again is MESH and Mesh(MESH.devices.tolist(), ["x", "y"]) is MESH and copy.deepcopy(MESH) == MESH
    assert pickle.loads(pickle.dumps(MESH)) == MESH and Mesh(CHIPS, "x") is not MESH
    for other in ((CHIPS[:4], "x"), (CHIPS, "y"), (CHIPS, "x", AxisType.Explicit), (CHIPS[::-1], "x")):
        assert Mesh(*other) is Mesh(*other) and Mesh(*other) is not Mesh(CHIPS, "x")


def test_a_mesh_tells_its_axes() -> None:
    assert dict(MESH.shape) == {"x": 4, "y": 2} and MESH.size == 8 and not MESH.empty
    assert repr(MESH) == "Mesh(axis_sizes=(4, 2), axis_names=('x', 'y'), axis_types=(Auto, Auto))"
    assert str(MESH) == "Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto))"
    kind = "device_kind=cpu, num_cores=None, platform=cpu"
    assert repr(MESH.abstract_mesh) == f"AbstractMesh('x': 4, 'y': 2, axis_types=(Auto, Auto), {kind})"
    assert MESH.abstract_mesh.abstract_device == AbstractDevice("cpu", None, "cpu")
    assert repr(MESH.abstract_mesh.abstract_device) == f"AbstractDevice({kind})"
    assert MESH.device_ids.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert MESH.are_all_axes_auto and MESH.auto_axes == ("x", "y") and not MESH.is_multi_process
    mixed = MESH.abstract_mesh.update_axis_types({"y": AxisType.Explicit})
    manual = mixed.update_axis_types({"x": AxisType.Manual, "y": AxisType.Manual})
    assert manual.are_all_axes_manual and not mixed.are_all_axes_manual
    assert mixed.explicit_axes == ("y",) and not mixed.are_all_axes_explicit and mixed != MESH.abstract_mesh


def test_a_mesh_without_devices_may_say_what_they_are() -> None:
    chip = AbstractDevice("TPU v5", 2, "tpu")
    given = AbstractMesh((4,), ("x",), abstract_device=chip)
    assert repr(given) == "AbstractMesh('x': 4, axis_types=(Auto,), device_kind=TPU v5, num_cores=2, platform=tpu)"
    assert given != AbstractMesh((4,), ("x",)) and given == AbstractMesh((4,), ("x",), abstract_device=chip)
    assert given.update(axis_sizes=(2,)).abstract_device is chip
    assert given.update_axis_types({"x": AxisType.Explicit}).abstract_device is chip
    assert given.update(abstract_device=None) == AbstractMesh((4,), ("x",))


def test_types_along_manual_axes() -> None:
    found = ManualAxisType(varying={"x"}, unreduced={"y"})
    assert found.update(varying=()) == ManualAxisType(unreduced={"y"}) and hash(found)
    mesh = AbstractMesh((2,) * 4, tuple("xyzw"), (AxisType.Manual,) * 3 + (AxisType.Auto,))
    assert found.invarying(mesh) == {"z"} and not polyax.typeof(np.ones(2)).mat.varying
    assert repr(found) == ("ManualAxisType(varying=frozenset({'x'}), unreduced=frozenset({'y'}), reduced=frozenset())")
    for name in ("unreduced", "reduced"):
        with pytest.raises(ValueError, match=f"varying and {name} cannot have common mesh axes"):
            ManualAxisType(varying={"x"}, **{name: {"x"}})


def test_meshes_are_values() -> None:
    same = Mesh(np.array(CHIPS).reshape(4, 2), ("x", "y"))
    assert same == MESH and hash(same) == hash(MESH)
    assert MESH.update(axis_names=("a", "b")).axis_names == ("a", "b")
    with pytest.raises(ValueError, match="read-only"):
        MESH.devices[0, 0] = CHIPS[1]


@pytest.mark.parametrize(
    ("devices", "names", "text"),
    [
        (CHIPS, ("x", "y"), r"devices.ndim == 1 and len\(axis_names\) == 2"),
        (np.array(CHIPS).reshape(4, 2), ("x", "x"), "axis names must differ"),
        ([CHIPS[0], CHIPS[0]], ("x",), "each device can be in a mesh once"),
        (CHIPS, (None,), r"Mesh axis names cannot be None. Got: \(None,\)"),
    ],
)
def test_meshes_that_are_refused(devices: object, names: tuple[str, ...], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Mesh(devices, names)


def test_specs() -> None:
    spec = P("x", ("y", "z"), None, P.UNCONSTRAINED)
    assert repr(spec) == "P('x', ('y', 'z'), None, UNCONSTRAINED)" and repr(P("x")) == "P('x',)" and repr(P()) == "P()"
    assert spec.cuts(5) == (("x",), ("y", "z"), (), (), ())
    assert P(("x",)) == P("x") and P("x") != P("x", None) and P("x") + P("y") == P("x", "y") and P(()) == P(None)
    assert tuple(P("x", None)) == ("x", None) and len(spec) == 4 and spec[0] == "x" and spec.index(None) == 2
    assert pickle.loads(pickle.dumps(spec)).cuts(4) == spec.cuts(4)
    assert repr(P("x", unreduced={"y"})) == "P('x', unreduced={'y'})"


def test_named_shardings() -> None:
    s = NamedSharding(MESH, P("x", None))
    assert repr(s) == (
        "NamedSharding(mesh=Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto)), spec=P('x', None), memory_kind=device)"
    )
    assert s.shard_shape((8, 3)) == (2, 3) and s.num_devices == 8 and not s.is_fully_replicated
    assert s.devices_indices_map((8, 2))[CHIPS[3]] == (slice(2, 4), slice(None))
    assert s.replicated_axes == {"y"} and NamedSharding(MESH, P()).is_fully_replicated
    assert s != NamedSharding(MESH, P("x")) and s.is_equivalent_to(NamedSharding(MESH, P("x")), 2)
    assert not s.is_equivalent_to(NamedSharding(MESH, P("y")), 2)
    both = NamedSharding(MESH, P(("y", "x"))).devices_indices_map((8,))
    assert [both[c][0].start for c in CHIPS] == [0, 4, 1, 5, 2, 6, 3, 7], "the axis named first varies slowest"


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: NamedSharding(MESH, P("z")), ValueError, r"axis: z of P\('z',\) is not found in mesh: \('x', 'y'\)"),
        (lambda: NamedSharding(MESH, P("x", "x")), DuplicateSpecError, "duplicate entries for `x`"),
        (lambda: NamedSharding(MESH, "x"), TypeError, "needs a PartitionSpec, got 'x'"),  # type: ignore[arg-type]
        (lambda: NamedSharding(MESH, P("x")).shard_shape((3,)), IndivisibleError, "axis 0 is partitioned 4 times"),
        (lambda: NamedSharding(MESH, P("x", "y")).shard_shape((8,)), ValueError, "rank at least 2.* rank 1"),
        (lambda: NamedSharding(MESH, P("x")).check_compatible_aval(()), ValueError, "For scalars the PartitionSpec"),
        (lambda: NamedSharding(MESH, P(), memory_kind="pinned_host"), ValueError, "memory kind: pinned_host"),
        (lambda: make_single_device_sharding(CHIPS[0], memory_kind="foo"), ValueError, "memory kind: foo"),
        (lambda: NamedSharding(AbstractMesh((2,), ("x",)), P("x")).device_list, ValueError, "has no devices"),
    ],
)  # fmt: skip
def test_shardings_that_are_refused(make, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_what_axes_of_another_mesh_can_say() -> None:
    """``x`` of four devices lies between the axes of two and four."""
    other = AbstractMesh((2, 4), ("a", "b"))
    given = [P("x"), P("y"), P(("x", "y")), P("y", "x"), P()]
    found = [cuts_on(other, NamedSharding(MESH.abstract_mesh, s), 2) for s in given]
    assert found == [None, None, None, None, ((), ())]
    back = AbstractMesh((2, 2, 2), ("a", "b", "c"))
    assert cuts_on(back, NamedSharding(MESH.abstract_mesh, P("y", "x")), 2) == (("c",), ("a", "b"))


def test_positional_shardings() -> None:
    s = PositionalSharding(CHIPS).reshape(4, 2)
    assert s.shard_shape((8, 2)) == (2, 1) and s.is_equivalent_to(NamedSharding(MESH, P("x", "y")), 2)
    rows = s.replicate(1)
    assert rows.shape == (4, 1) and rows.is_equivalent_to(NamedSharding(MESH, P("x", None)), 2)
    columns, named = (w.devices_indices_map((8, 2)) for w in (s.replicate(0), NamedSharding(MESH, P(None, "y"))))
    assert {d: bounds(columns[d], (8, 2)) for d in CHIPS} == {d: bounds(named[d], (8, 2)) for d in CHIPS}
    assert s.replicate().is_fully_replicated and s.T.shape == (2, 4)
    with pytest.raises(IndivisibleError, match="array axis 0 is partitioned 4 times"):
        s.devices_indices_map((3, 2))


def test_tiles_as_xla_has_them() -> None:
    tiles = SimpleNamespace(
        tile_assignment_dimensions=[4, 1, 2], tile_assignment_devices=range(8), replicate_on_last_tile_dim=True
    )
    assert GSPMDSharding(CHIPS, tiles).is_equivalent_to(NamedSharding(MESH, P("x", None)), 2)
    assert GSPMDSharding.get_replicated(CHIPS).is_fully_replicated


def test_the_mesh_in_force() -> None:
    assert get_mesh().empty and get_abstract_mesh().empty
    with set_mesh(MESH) as mesh:
        assert mesh is MESH and get_mesh() is MESH and get_abstract_mesh() == MESH.abstract_mesh
        with use_abstract_mesh(AbstractMesh((8,), ("z",))):
            assert get_abstract_mesh().axis_names == ("z",)
        with MESH.update(axis_names=("a", "b")):
            assert get_mesh() is MESH  # that is for specs alone
    with MESH.update(axis_names=("a", "b")) as entered:
        assert get_mesh().empty and mesh_for_specs() is entered
    assert get_mesh().empty


def test_the_mesh_is_chosen_outside_of_programs() -> None:
    with pytest.raises(ValueError, match="only be used outside of `polyax.jit`"):
        polyax.jit(lambda x: set_mesh(MESH) and x)(1.0)
    with pytest.raises(ValueError, match="Expected mesh of type"):
        set_mesh("x")
    with pytest.raises(ValueError, match="contains manual axes"):
        set_mesh(MESH.update(axis_types=(AxisType.Manual, AxisType.Auto)))


def test_programs_are_traced_for_the_mesh_in_force() -> None:
    f = polyax.jit(lambda x: x + len(get_abstract_mesh().axis_names))
    assert f(1.0) == 1
    with set_mesh(MESH):
        assert "add a 2.0" in str(f.trace(1.0).jaxpr)


def test_make_mesh_wants_enough_devices() -> None:
    with pytest.raises(ValueError, match=r"must be >= the product of mesh_shape \(64,\).*POLYAX_NUM_CPU_DEVICES=64"):
        polyax.make_mesh((64,), ("x",))
    assert polyax.make_mesh((1,), ("x",)).axis_types == (AxisType.Explicit,)
    with pytest.raises(ValueError, match="`axis_shapes` passed to `make_mesh` should be a sequence of ints"):
        polyax.make_mesh((1.0,), ("x",))  # pyright: ignore[reportArgumentType]
    told = (
        r"Number of axis names should match the number of axis_types. Got axis_names=\('x',\) and axis_types=\(Auto, "
    )
    with pytest.raises(ValueError, match=told):
        polyax.make_mesh((1,), ("x",), (AxisType.Auto,) * 2)


def test_an_empty_mesh_in_force_is_none() -> None:
    empty = Mesh(np.empty((), object), ())
    assert repr(empty) == "Mesh(axis_sizes=(), axis_names=())"
    with polyax.set_mesh(Mesh(polyax.devices()[:1], ("x",))), polyax.set_mesh(empty):
        assert get_mesh().empty
        assert polyax.jit(lambda x: x * 2)(3.0).item() == 6.0


def test_kinds_of_axes_are_written_as_of_enumerations() -> None:
    assert [str(AxisType.Auto), repr(AxisType.Auto), f"{AxisType.Explicit}"] == [
        "AxisType.Auto",
        "Auto",
        "AxisType.Explicit",
    ]


@pytest.mark.parametrize("name", ["devices", "device_ids", "is_multi_process", "local_devices", "local_mesh"])
def test_a_mesh_without_devices_says_so(name: str) -> None:
    with pytest.raises(ValueError, match=f"AbstractMesh does not implement {name}"):
        getattr(MESH.abstract_mesh, name)


def test_meshes_without_devices_are_put_into_force_alone() -> None:
    with pytest.raises(ValueError, match="AbstractMesh does not implement __enter__"), MESH.abstract_mesh:
        pass
    with pytest.raises(ValueError, match=r"Expected mesh of type `polyax.sharding.AbstractMesh`. Got type: <class"):
        use_abstract_mesh(MESH)


def test_meshes_that_are_entered_are_deprecated() -> None:
    words = "`with mesh:` context manager has been deprecated"
    with pytest.warns(DeprecationWarning, match=words) as told, Mesh(polyax.devices()[:1], ("x",)):
        pass
    assert [w.filename for w in told] == [__file__]
