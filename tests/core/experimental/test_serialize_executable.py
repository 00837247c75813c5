from __future__ import annotations

import pickle

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.experimental.serialize_executable import deserialize_and_load, serialize
from support.process import output

TABLE = np.arange(100, dtype=np.float32)


@pytest.fixture
def compiled():
    def look_up(i, *, scale):
        return {"found": jnp.take(TABLE, i["at"]) * scale}

    return polyax.jit(look_up).lower({"at": jnp.arange(3)}, scale=2.0).compile()


def test_same_function(compiled):
    loaded = deserialize_and_load(*serialize(compiled))
    assert loaded({"at": jnp.array([5, 7, 9])}, scale=3.0)["found"].tolist() == [15, 21, 27]
    assert loaded.fun_name == "look_up" and (loaded.in_tree, loaded.out_tree) == (compiled.in_tree, compiled.out_tree)
    with pytest.raises(TypeError, match=r"compiled with int32\[3\] and called with int32\[2\]"):
        loaded({"at": jnp.arange(2)}, scale=3.0)


def test_in_another_process(compiled, tmp_path):
    (tmp_path / "saved").write_bytes(pickle.dumps(serialize(compiled)))
    program = f"""
import pickle, polyax.numpy as jnp
from polyax.experimental.serialize_executable import deserialize_and_load
saved = pickle.loads(open({str(tmp_path / "saved")!r}, "rb").read())
print(deserialize_and_load(*saved)({{"at": jnp.arange(3)}}, scale=0.5)["found"].tolist())
"""
    assert output(program) == "[0.0, 0.5, 1.0]"


def test_donated_arguments_stay_donated():
    compiled = polyax.jit(lambda x, y: x + y["a"], donate_argnums=1).lower(1.0, {"a": 2.0}).compile()
    loaded = deserialize_and_load(*serialize(compiled))
    assert loaded.donate_argnums == (1,)


def test_another_platform(compiled):
    reference = polyax.devices("reference")
    for options in ({"backend": "reference"}, {"execution_devices": reference[:1]}):
        loaded = deserialize_and_load(*serialize(compiled), **options)
        at = polyax.device_put({"at": np.arange(3, dtype=np.int32)}, reference[0])
        assert loaded(at, scale=1.0)["found"].devices() == {reference[0]}


def test_bad_input(compiled):
    saved, *trees = serialize(compiled)
    with pytest.raises(ValueError, match="isn't whole"):
        deserialize_and_load(saved[:-1], *trees)
    with pytest.raises(ValueError, match="no exported program"):
        deserialize_and_load(b"nothing", *trees)
    with pytest.raises(ValueError, match="got 0 execution_devices"):
        deserialize_and_load(saved, *trees, execution_devices=[])
    with pytest.raises(ValueError, match="client other than `backend`"):
        deserialize_and_load(saved, *trees, backend="cpu", execution_devices=polyax.devices("reference"))
    calls = polyax.jit(lambda x: polyax.pure_callback(np.sin, x, x)).lower(1.0).compile()
    with pytest.raises(NotImplementedError, match="pure_callback"):
        serialize(calls)
    total = polyax.new_ref(0)
    adds = polyax.jit(lambda x: polyax.ref.addupdate(total, ..., x)).lower(1).compile()
    with pytest.raises(ValueError, match="can't serialize with a closed-over mutable array ref"):
        serialize(adds)
