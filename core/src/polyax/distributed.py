"""Several processes that compute together: ``polyax.distributed.initialize()`` in each of them.

Each process runs the same script; ``polyax.devices()`` lists the devices of all, ``polyax.local_devices()`` its own.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence

from polyax.runtime.arrays.devices import effects_barrier
from polyax.runtime.contract import processes
from polyax.runtime.contract.processes import Alone, ProcessGroup, ProcessSpec, Wanted
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.runtime.plugins import topology
from polyax.runtime.plugins.registry import registry

__all__ = ["initialize", "is_initialized", "shutdown"]

_SIZES = "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"
"""Variables in which launchers tell how many processes they started."""
_initialized: list[ProcessGroup] = []


@api_boundary
def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Connects this process to the others of ``mpiexec -n 4 python train.py``; all of them must call it, early.

    A process that was started alone stays alone. All processes compute on the same platforms, in the order in which
    ``POLYAX_PLATFORMS`` names them.

    Args:
      coordinator_address, coordinator_bind_address: not needed: the launcher knows where the processes are.
      num_processes, process_id: what is expected; whoever launched the processes has decided.
      local_device_ids: which of its devices this process uses; by default all.
      cluster_detection_method: the name of what connects the processes, such as ``"mpi4py"``.
      initialization_timeout: seconds that the processes wait for each other here.
      heartbeat_timeout_seconds: after how many seconds a machine that is silent counts as lost.
      shutdown_timeout_seconds, slice_index, partition_index: not needed.

    Raises:
      RuntimeError: it was called before, or several processes were started and nothing connects them.
      ValueError: another number of processes was started than is expected.

    >>> initialize()
    >>> is_initialized()
    True
    >>> shutdown()
    """
    if _initialized:
        raise RuntimeError("distributed.initialize should only be called once.")
    wanted = Wanted(num_processes, process_id, initialization_timeout, heartbeat_timeout_seconds)
    group = _connected(wanted, cluster_detection_method)
    if group.size > 1:
        processes.join(group)
        ids = [local_device_ids] if isinstance(local_device_ids, int) else local_device_ids
        topology.agree(group, ids)
    _initialized.append(group)
    atexit.register(shutdown)
    os.register_at_fork(after_in_child=_be_alone)


def is_initialized() -> bool:
    """Whether ``initialize`` was called, and ``shutdown`` wasn't since."""
    return bool(_initialized)


def _be_alone() -> None:
    """In a process that was forked off: it is none of those that belong together."""
    if _initialized:
        atexit.unregister(shutdown)
        _initialized.clear()
        topology.forget()


def shutdown() -> None:
    """Waits for what was started, and takes leave of the other processes; done at the end of the program as well."""
    if _initialized:
        atexit.unregister(shutdown)
        effects_barrier()
        _initialized.clear()
        topology.forget()


def _connected(wanted: Wanted, method: str | None) -> ProcessGroup:
    specs: list[ProcessSpec] = [spec for _, spec in registry.ask("any", "polyax_processes")]
    reasons: dict[str, str] = {}
    for spec in specs:
        if method in (None, spec.name):
            reason = spec.probe()
            if reason is None:
                return spec.connect(wanted)
            reasons[spec.name] = reason
    started = next((os.environ[name] for name in _SIZES if os.environ.get(name, "1") != "1"), None)
    expected = wanted.num_processes or int(started or 1)
    if expected == 1 and method is None:
        return Alone()
    raise RuntimeError(_advice(expected, method, reasons))


def _advice(expected: int, method: str | None, reasons: dict[str, str]) -> str:
    why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or "no plugin that does is installed"
    by = "" if method is None else f" by {method!r}"
    return (
        f"distributed.initialize: nothing connects {expected} processes{by} ({why}). Install polyax-mpi (polyax[mpi]) "
        f"and start the program with `mpiexec -n {expected} python program.py`."
    )
