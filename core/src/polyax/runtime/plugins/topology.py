"""The devices of all processes: agreed upon when the processes are connected, and numbered throughout."""

from __future__ import annotations

from collections.abc import Sequence

from polyax.ir.config import config
from polyax.runtime.contract import processes
from polyax.runtime.contract.backend import Backend, Device
from polyax.runtime.contract.processes import ProcessGroup
from polyax.runtime.plugins import platforms
from polyax.runtime.plugins.default_device import default_device_now
from polyax.runtime.plugins.registry import registry

_everywhere: dict[Backend, tuple[Device, ...]] = {}


def devices_of(backend: Backend) -> Sequence[Device]:
    """The devices of a platform in all processes; those of this one alone, if the platform wasn't agreed upon."""
    return _everywhere.get(backend) or backend.devices()


def agree(group: ProcessGroup, ids: Sequence[int] | None = None) -> None:
    """Opens the platforms in force here, and gives the devices of all processes their numbers.

    ``ids``: the devices of this process that take part, if not all do.

    Raises:
      RuntimeError: the processes don't compute on the same platforms.
    """
    import json  # when it is needed: `import polyax` stays quick

    names = platforms.requested() or [default_device_now().platform]
    mine = {name: _taking_part(registry.backend(name), ids) for name in names}
    told = [json.loads(text) for text in group.gather(json.dumps(mine).encode(), "distributed.initialize")]
    if any(list(other) != names for other in told):
        listed = "; ".join(f"process {n}: {', '.join(other)}" for n, other in enumerate(told))
        raise RuntimeError(
            f"The processes compute on different platforms: {listed}. Set POLYAX_PLATFORMS to the same in all of them."
        )
    for name in names:
        _everywhere[registry.backend(name)] = _numbered(registry.backend(name), [other[name] for other in told], group)
    if ids:
        config.update("device", f"{names[0]}:{ids[0]}")


def _taking_part(backend: Backend, ids: Sequence[int] | None) -> list[tuple[int, str]]:
    """The numbers and kinds of the devices of this process."""
    own = backend.devices()
    for n in ids or ():
        if not 0 <= n < len(own):
            raise ValueError(f"local_device_ids={list(ids or ())}: {backend.name} has devices 0 to {len(own) - 1}")
    return [(n, d.device_kind) for n, d in enumerate(own) if ids is None or n in ids]


def _numbered(backend: Backend, kinds: Sequence[Sequence[tuple[int, str]]], group: ProcessGroup) -> tuple[Device, ...]:
    found: list[Device] = []
    for process, own in enumerate(kinds):
        for n, kind in own:
            if process == group.rank:
                device = backend.devices()[n]
                device.id, device.process_index = len(found), process
            else:
                device = Device(
                    backend, len(found), kind=kind, process_index=process, local_hardware_id=n, is_addressable=False
                )
            found.append(device)
    return tuple(found)


def forget() -> None:
    """This process is alone again: its devices have the numbers that they began with."""
    for backend in _everywhere:
        for n, device in enumerate(backend.devices()):
            device.id, device.process_index = n, 0
    _everywhere.clear()
    processes.leave()
