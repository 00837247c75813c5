"""What processes tell each other outside of programs: values, that they are at one place, parts of arrays.

All processes must make these calls, in the same order.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from polyax import late
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding, bounds
from polyax.meshes.spec import PartitionSpec
from polyax.runtime.arrays.array import Array, is_concrete
from polyax.runtime.arrays.local import local_part, of_local_part, whole_shape
from polyax.runtime.arrays.placing import device_put
from polyax.runtime.contract import processes
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.paths import broadcast_prefix
from polyax.trace.tree import tree_flatten, tree_map, tree_unflatten

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]


def _gathered(value: Any, what: str) -> list[Any]:
    return [pickle.loads(told) for told in processes.here().gather(pickle.dumps(value, protocol=5), what)]


@api_boundary
def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The arrays of all processes, as NumPy arrays: stacked along a new axis in front.

    Args:
      in_tree: arrays of the same shapes in all processes, in any pytree. Of an array that spans processes, the whole
        is returned.
      tiled: join them along the first axis instead.

    Raises:
      ValueError: shapes differ between processes.

    >>> process_allgather(np.arange(3))
    array([[0, 1, 2]])
    >>> process_allgather(np.arange(3), tiled=True)
    array([0, 1, 2])
    """
    return tree_map(lambda x: _allgather(x, tiled), in_tree)


def _allgather(x: Any, tiled: bool) -> np.ndarray:
    if is_concrete(x) and not x.is_fully_addressable:
        return np.asarray(x) if x.is_fully_replicated and x.parts else _whole(x)
    parts = _gathered(np.asarray(x), "process_allgather")
    if len({p.shape for p in parts}) > 1:
        raise ValueError(
            f"process_allgather needs arrays of the same shape in all processes, got {[p.shape for p in parts]}"
        )
    return np.concatenate(parts) if tiled and parts[0].ndim else np.stack(parts)


def _whole(x: Array) -> np.ndarray:
    """Each process tells those parts that it is the first to have."""
    mine = [
        (bounds(s.index, x.shape), np.asarray(s.data))
        for s in x.global_shards
        if s.replica_id == 0 and s.data is not None
    ]
    value = np.empty(x.shape, x.dtype)
    for told in _gathered(mine, "process_allgather"):
        for place, part in told:
            value[tuple([slice(a, b) for a, b in place])] = part
    return value


@api_boundary
def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """What one process has, in all of them, as NumPy arrays.

    Args:
      in_tree: arrays of the same shapes in all processes, in any pytree.
      is_source: whether it is this process; by default the first one is it.

    Raises:
      ValueError: no process is the source.

    >>> broadcast_one_to_all({"step": np.int32(3)})
    {'step': array(3, dtype=int32)}
    """
    source = processes.here().rank == 0 if is_source is None else is_source
    leaves, tree = tree_flatten(in_tree)
    told = _gathered([np.asarray(x) for x in leaves] if source else None, "broadcast_one_to_all")
    found = next((values for values in told if values is not None), None)
    if found is None:
        raise ValueError("broadcast_one_to_all: is_source is true in no process")
    return tree_unflatten(tree, found)


@api_boundary
def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Checks that all processes have the same values.

    Raises:
      AssertionError: one hasn't; the text shows its values and those of the first.

    >>> assert_equal({"seed": 3}, "seeds differ")
    """
    leaves, tree = tree_flatten(in_tree)
    told = _gathered((str(tree), [np.asarray(x) for x in leaves]), "assert_equal")
    for rank, (structure, values) in enumerate(told):
        same = structure == told[0][0] and len(values) == len(told[0][1])
        if not (same and all(map(_same, values, told[0][1]))):
            raise AssertionError(
                f"{fail_message} Expected: {told[0][1]} (process 0); got: {values} (process {rank}).".lstrip()
            )


def _same(x: np.ndarray, y: np.ndarray) -> bool:
    return x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes()


@api_boundary
def sync_global_devices(name: str) -> None:
    """Returns once all processes have called it with this name.

    Raises:
      AssertionError: a process called it with another name.

    >>> sync_global_devices("epoch 3")
    """
    names = _gathered(name, f"sync_global_devices({name!r})")
    if len(set(names)) > 1:
        raise AssertionError(f"sync_global_devices name mismatch ({name!r}): the processes are at {names}")


@api_boundary
def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Arrays on a mesh of all processes, of which each process gives what its devices have.

    Args:
      local_inputs: this process's parts, in any pytree.
      global_mesh: the mesh.
      pspecs: a ``PartitionSpec``, or a pytree of them that ``local_inputs`` begins with.

    Raises:
      ValueError: a spec is None, or parts don't fit.

    >>> import polyax
    >>> mesh = Mesh(polyax.devices()[:1], "x")
    >>> host_local_array_to_global_array(np.arange(4), mesh, PartitionSpec("x"))
    Array([0, 1, 2, 3], dtype=int32)
    """
    return _with_specs(_to_global, local_inputs, global_mesh, pspecs)


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the machine is about to be taken away and all processes are to save at this step. Nobody tells polyax.

    Raises:
      RuntimeError: there are several processes.
    """
    if processes.here().size > 1:
        raise RuntimeError("Preemption sync manager has not been initialized: who takes machines away isn't asked.")
    return False


@api_boundary
def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """What this process's devices have of arrays on a mesh of all processes.

    The inverse of ``host_local_array_to_global_array``.

    Raises:
      ValueError: a spec is None, or the parts here aren't a block of the array.
    """
    return _with_specs(_to_local, global_inputs, global_mesh, pspecs)


def _with_specs(function: Any, inputs: Any, mesh: Mesh, pspecs: Any) -> Any:
    leaves, tree = tree_flatten(inputs)
    specs = broadcast_prefix(pspecs, inputs, is_leaf=lambda s: s is None or isinstance(s, PartitionSpec))
    if any(s is None for s in specs):
        raise ValueError(
            "`None` is not a valid input to the pspecs argument. Please use jax.sharding.PartitionSpec() if you wanted "
            "to replicate your input."
        )
    return tree_unflatten(tree, [function(x, NamedSharding(mesh, spec)) for x, spec in zip(leaves, specs, strict=True)])


def _to_global(x: Any, sharding: NamedSharding) -> Any:
    if is_concrete(x) and not x.is_fully_addressable:
        return x
    x = x if is_concrete(x) else np.asarray(x)
    return of_local_part(x, whole_shape(sharding, x.shape), sharding)


def _to_local(x: Any, sharding: NamedSharding) -> Any:
    return local_part(x if is_concrete(x) and x.sharding == sharding else device_put(x, sharding))


def __getattr__(name: str) -> Any:
    return late.load(__name__, {}, name)
