"""orbax.checkpoint: what is saved is restored."""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from common import program


def _state():
    params = {"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.ones(3, jnp.bfloat16), "n": jnp.int32(3)}
    return {"params": params, "opt": optax.adam(1e-3).init(params["w"]), "host": np.arange(3), "step": 7}


def _same(a, b):
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.array_equal(np.asarray(x, np.float32), np.asarray(y, np.float32)) for x, y in pairs)


@program()
def saved_and_restored():
    state = _state()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "state"
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(path, state)
            checkpointer.wait_until_finished()
            abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
            restored = checkpointer.restore(path, abstract)
            plain = checkpointer.restore(path)
    return {
        "same": _same(state, restored),
        "leaves": len(jax.tree.leaves(plain)),
        "arrays": isinstance(restored["params"]["w"], jax.Array),
        "dtype": restored["params"]["b"].dtype == jnp.bfloat16,
        "w": restored["params"]["w"],
    }


@program()
def managed():
    with tempfile.TemporaryDirectory() as directory:
        options = ocp.CheckpointManagerOptions(max_to_keep=2, save_interval_steps=2)
        with ocp.CheckpointManager(Path(directory) / "run", options=options) as manager:
            for step in range(7):
                manager.save(step, args=ocp.args.StandardSave({"x": jnp.full(3, float(step))}))
            manager.wait_until_finished()
            steps = sorted(manager.all_steps())
            last = manager.restore(manager.latest_step(), args=ocp.args.StandardRestore({"x": jnp.zeros(3)}))
    return {"steps": steps, "last": last["x"]}


@program()
def trees_as_they_are():
    state = _state()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "tree"
        checkpointer = ocp.PyTreeCheckpointer()
        checkpointer.save(path, state)
        restored = checkpointer.restore(path)
        metadata = checkpointer.metadata(path)
    return {"w": restored["params"]["w"], "step": restored["step"], "told": metadata is not None}
