"""Saved programs: every primitive comes back as it was, damaged files are refused, old ones are still read."""

from __future__ import annotations

import collections
import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import export, random
from polyax.export import container, programs
from polyax.export.plain import HOST, plain
from polyax.extend.core import Primitive
from specs.table import CASES
from support.process import output

GOLDEN = Path(__file__).parent / "golden.polyax"
X = np.array([0.5, 1.0, 1.5], np.float32)


def primitives_in(closed: Any) -> set[str]:
    from polyax.ir.jaxpr import sub_jaxprs

    inner = [primitives_in(c) for e in closed.eqns for c in sub_jaxprs(e)]
    return {e.primitive.name for e in closed.eqns}.union(*inner)


@pytest.mark.parametrize("name", CASES)
def test_programs_come_back_as_they_were(name: str) -> None:
    case = CASES[name]
    closed = polyax.make_jaxpr(case.fun)(*case.args)
    if primitives_in(closed) & HOST:
        with pytest.raises(NotImplementedError, match="serialization of host_callbacks is not yet implemented"):
            plain(closed)
        return
    saved = plain(closed)
    loaded = programs.loads(programs.dumps(saved))
    assert without_devices(str(loaded)) == without_devices(str(saved))
    assert loaded.in_avals == saved.in_avals and loaded.effects == saved.effects
    assert [np.asarray(c).tobytes() for c in loaded.consts] == [np.asarray(c).tobytes() for c in saved.consts]


def without_devices(text: str) -> str:
    """Meshes lose their devices."""
    return "\n".join(line for line in text.splitlines() if not line.strip().startswith("mesh="))


def model(params: dict[str, Any], x: Any) -> Any:
    hidden = polyax.nn.relu(x @ params["w"] + params["b"])

    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        return jnp.tanh(carry + row), carry.sum()

    last, sums = polyax.lax.scan(step, jnp.zeros(3), hidden)
    return {"last": last, "sums": sums, "largest": polyax.lax.cond(last[0] > 0, jnp.max, jnp.min, hidden)}


def model_arguments(rows: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    params = {"w": rng.normal(size=(2, 3)).astype(np.float32), "b": np.ones(3, np.float32)}
    return params, rng.normal(size=(rows, 2)).astype(np.float32)


def exported_model() -> export.Exported:
    (b,) = export.symbolic_shape("b")
    params, x = model_arguments()
    return export.export(polyax.jit(model), platforms=["cpu", "opencl", "cuda", "hello_c", "reference"])(
        params, polyax.ShapeDtypeStruct((b, 2), x.dtype)
    )


def assert_same(found: Any, wanted: Any) -> None:
    polyax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, wanted)


def test_a_file_of_the_first_version_is_still_read() -> None:
    """Written by ``python tests/core/export/test_files.py`` when the form was new."""
    old = export.deserialize(GOLDEN.read_bytes())
    for rows in (1, 4):
        args = model_arguments(rows)
        assert_same(old.call(*args), model(*args))
    loss = lambda f: lambda params, x: f(params, x)["last"].sum()
    assert_same(polyax.grad(loss(old.call))(*args), polyax.grad(loss(model))(*args))


def test_what_is_written_does_not_depend_on_the_process() -> None:
    assert exported_model().serialize() == exported_model().serialize()


def test_derivatives_of_saved_orders() -> None:
    f = lambda x: 7 * x * x * x
    saved = export.export(polyax.jit(f))(1.0).serialize(vjp_order=3)
    g, found = export.deserialize(saved).call, []
    for _ in range(4):
        found.append(g(0.1).item())
        g = polyax.grad(g)
    assert np.allclose(found, [0.007, 0.21, 4.2, 42.0])
    with pytest.raises(ValueError, match="No VJP is available"):
        g(0.1)
    with pytest.raises(ValueError, match="does not have vjps of high-enough order"):
        export.deserialize(saved).serialize(vjp_order=4)


def test_derivatives_respect_rules_of_users() -> None:
    @polyax.custom_vjp
    def f(x: Any) -> Any:
        return x * 2

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * 10,))
    loaded = export.deserialize(export.export(polyax.jit(f))(X).serialize(vjp_order=1))
    assert polyax.grad(lambda x: loaded.call(x).sum())(X).tolist() == [10, 10, 10]


def test_integers_have_no_derivative() -> None:
    f = lambda x, n: (x * n, n + 1)
    loaded = export.deserialize(export.export(polyax.jit(f))(X, 3).serialize(vjp_order=1))
    assert polyax.grad(lambda x: loaded.call(x, 3)[0].sum())(X).tolist() == [3, 3, 3]


def test_constants_and_keys() -> None:
    key, table = random.key(7), jnp.arange(5.0)
    f = lambda i: random.normal(key, (2,)) + table[i]
    assert_same(export.deserialize(export.export(polyax.jit(f))(3).serialize()).call(3), f(3))


def test_calls_inside_of_transformations() -> None:
    loaded = export.deserialize(export.export(polyax.jit(lambda x: jnp.sin(x).sum()))(X).serialize(vjp_order=1))
    assert_same(polyax.jit(lambda x: 2 * loaded.call(x))(X), 2 * np.sin(X).sum())
    assert_same(polyax.vmap(loaded.call)(np.stack([X, 2 * X])), [np.sin(X).sum(), np.sin(2 * X).sum()])
    assert_same(polyax.jit(polyax.grad(loaded.call))(X), np.cos(X))
    again = export.export(polyax.jit(lambda x: loaded.call(x) + 1))(X)
    assert_same(export.deserialize(again.serialize()).call(X), np.sin(X).sum() + 1)


def test_another_process_needs_no_more_than_the_file(tmp_path: Path) -> None:
    """Not even modules that have the primitives."""
    f = polyax.jit(lambda x: polyax.lax.bessel_i0e(x))
    saved = export.export(f, platforms=["cpu"])(X).serialize()
    (tmp_path / "f").write_bytes(saved)
    program = f"""
        import numpy as np
        from polyax import export
        loaded = export.deserialize(open({str(tmp_path / "f")!r}, "rb").read())
        print(loaded.call(np.array([0.5, 1.0, 1.5], np.float32)).tolist())
    """
    assert json.loads(output(program, POLYAX_PLATFORMS="cpu")) == f(X).tolist()


# --- structures -------------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    first: Any
    second: Any


class Other(NamedTuple):
    first: Any


def through_file(f: Any, *args: Any) -> Any:
    return export.deserialize(export.export(polyax.jit(f))(*args).serialize()).call(*args)


def test_structures() -> None:
    export.register_namedtuple_serialization(Pair, serialized_name="tests.Pair")
    x = {"a": [1.0, (2.0, None)], "b": collections.OrderedDict(z=3.0, y=Pair(4.0, ()))}
    assert polyax.tree.map(float, through_file(lambda x: x, x)) == x
    with pytest.raises(ValueError, match="Duplicate serialization registration for type"):
        export.register_namedtuple_serialization(Pair, serialized_name="other")
    with pytest.raises(ValueError, match="Duplicate serialization registration for serialized_name"):
        export.register_namedtuple_serialization(Other, serialized_name="tests.Pair")
    with pytest.raises(ValueError, match="Cannot serialize PyTreeDef containing an unregistered type"):
        through_file(lambda x: x, Other(1.0))
    with pytest.raises(TypeError, match=r"dictionaries with string keys. Found key 1 of type"):
        through_file(lambda x: x, {1: 2.0})
    with pytest.raises(ValueError, match="you must call first"):
        export.register_pytree_node_serialization(
            set, serialized_name="set", serialize_auxdata=bytes, deserialize_auxdata=bytes
        )


def test_nodes_with_static_data() -> None:
    @polyax.tree_util.register_pytree_node_class
    class Scaled:
        def __init__(self, x: Any, by: int) -> None:
            self.x, self.by = x, by

        def tree_flatten(self) -> Any:
            return (self.x,), self.by

        @classmethod
        def tree_unflatten(cls, by: int, children: Any) -> Any:
            return cls(children[0], by)

    export.register_pytree_node_serialization(
        Scaled,
        serialized_name="tests.Scaled",
        serialize_auxdata=lambda by: str(by).encode(),
        deserialize_auxdata=lambda data: int(data),
    )
    found = through_file(lambda s: Scaled(s.x * s.by, 2), Scaled(X, 3))
    assert found.by == 2 and found.x.tolist() == (X * 3).tolist()


# --- bad input --------------------------------------------------------------------------------------------------------


def signed(data: bytes, text: dict[str, Any]) -> bytes:
    """``data`` with another text, as a program of ill will would write it."""
    head = container._HEAD.unpack_from(data)
    rest = data[container._HEAD.size + head[2] :]
    new = json.dumps(text).encode()
    digest = hashlib.sha256(new + rest).digest()
    return container._HEAD.pack(head[0], head[1], len(new), head[3], digest) + new + rest


def test_damaged_files_are_refused() -> None:
    data = bytes(export.export(polyax.jit(lambda x: jnp.sin(x) + jnp.arange(3.0)))(X).serialize())
    for n in (0, 5, 14, 40, 70, len(data) - 1):
        with pytest.raises(ValueError, match="isn't whole|no exported program"):
            export.deserialize(data[:n])
    for n in range(80, len(data), 97):
        with pytest.raises(ValueError, match="damaged: its checksum differs"):
            export.deserialize(data[:n] + bytes([data[n] ^ 1]) + data[n + 1 :])
    with pytest.raises(ValueError, match="version 99 of the form; this polyax reads the versions 1 to 1"):
        export.deserialize(data[:14] + (99).to_bytes(4, "little") + data[18:])
    with pytest.raises(ValueError, match="no exported program of polyax"):
        export.deserialize(b"\x80\x04" + data)


def test_programs_of_other_kinds_are_refused() -> None:
    data = programs.dumps(polyax.make_jaxpr(lambda x: jnp.sin(x) * 2)(X))
    text, _ = container.read(data, "program")
    (program,) = text["programs"]

    def refused(match: str, **changes: Any) -> None:
        with pytest.raises(ValueError, match=match):
            programs.loads(signed(data, text | {"programs": [program | changes]}))

    first, second = program["eqns"]
    refused("the primitive 'launch', which this version of polyax doesn't have", eqns=[["launch", *first[1:]], second])
    refused("knows no value of the kind", eqns=[[*first[:2], {"accuracy": ["eval", "1 + 1"]}, first[3]], second])
    refused("damaged or of an unknown kind", eqns=[[first[0], [9], *first[2:]], second])
    refused("damaged or of an unknown kind: JaxprTypeError", **{"in": [1]}, eqns=[["mul", [0, 0], {}, [0]]], out=[1])


def test_names_that_primitives_had_are_still_read() -> None:
    closed = polyax.make_jaxpr(polyax.jit(lambda x: jnp.sin(x) + 1))(jnp.ones(3))
    data = programs.dumps(closed)
    text, _ = container.read(data, "program")
    older = json.loads(json.dumps(text).replace('"jit"', '"pjit"'))
    assert older != text and str(programs.loads(signed(data, older))) == str(closed)


def test_what_files_cannot_hold_is_refused() -> None:
    mine = Primitive("test_mine")
    mine.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match="mine at .*test_files.py.* isn't one of polyax's own"):
        export.export(polyax.jit(lambda x: mine.bind(x)))(X)
    with pytest.raises(NotImplementedError, match="host_callbacks.*pull.*test_files.py"):
        export.export(polyax.jit(lambda x: polyax.pure_callback(pull, x, x)))(X)
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(lambda x: x)


def test_functions_of_the_library_are_exported_as_they_are():
    exported = export.export(jnp.sin)(X)
    assert exported.fun_name == "sin" and exported.platforms == (export.default_export_platform(),)
    np.testing.assert_allclose(exported.call(X), np.sin(X), rtol=1e-6)


def pull(x: Any) -> Any:
    return x


if __name__ == "__main__":
    GOLDEN.write_bytes(exported_model().serialize(vjp_order=1))


def test_types_that_were_saved_are_not_weak() -> None:
    made = export.export(polyax.jit(lambda x: (x, 2.0)))(1.0)
    loaded = export.deserialize(made.serialize())
    assert [a.weak_type for a in (*made.in_avals, *made.out_avals)] == [True] * 3
    assert not any(a.weak_type for a in (*loaded.in_avals, *loaded.out_avals))
    assert [y.weak_type for y in made.call(3.0)] == [True, True]
    assert [y.weak_type for y in loaded.call(3.0)] == [False, False]


def test_calling_conventions() -> None:
    f = polyax.jit(lambda x: x)
    assert export.export(f)(1.0).calling_convention_version == 10
    try:
        polyax.config.update("export_calling_convention_version", 9)
        assert export.deserialize(export.export(f)(1.0).serialize()).calling_convention_version == 9
        polyax.config.update("export_calling_convention_version", 8)
        with pytest.raises(ValueError, match=r"version 8 is outside the range of supported versions \[9..10\]"):
            export.export(f)(1.0)
    finally:
        polyax.config.update("export_calling_convention_version", 10)


def test_platforms_of_calls_inside() -> None:
    """What is exported calls only what was exported for its platforms, wherever it is made."""
    inner = export.export(polyax.jit(lambda x: x + 1), platforms=("tpu", "cuda"))(1.0)
    assert export.export(polyax.jit(lambda x: inner.call(x)), platforms=("tpu",))(1.0).platforms == ("tpu",)
    with pytest.raises(
        ValueError, match=r"was exported for platforms '\('tpu', 'cuda'\)' but it is used on '\('cpu', 't"
    ):
        export.export(polyax.jit(lambda x: inner.call(x)), platforms=("tpu", "cpu"))(1.0)
    assert export.export(polyax.jit(lambda x: x), platforms=[])(1.0).platforms == (export.default_export_platform(),)
