"""What backends share whose arrays are NumPy's: the devices, transfers, and programs that a queue of the host runs.

Must not know what runs a program: an engine, or NumPy itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.effects import Effects
from polyax.ir.errors import PluginError
from polyax.runtime.contract.backend import Backend, Buffer, Device, Executable, Queue, Token
from polyax.runtime.contract.host_devices import host_devices
from polyax.runtime.contract.queue import HostBuffer

_UNSET = np.empty(0)


class HostArrayBackend(Backend):
    """Virtual devices of the host, whose buffers are NumPy arrays. ``name`` and ``compile`` remain to be said.

    ``kind``: what users are told of the devices.
    """

    def __init__(self, kind: str) -> None:
        self._devices = host_devices(self, kind)

    def devices(self) -> Sequence[Device]:
        return self._devices

    def to_device(self, host: np.ndarray, device: Device) -> HostBuffer:
        return HostBuffer(host.copy())

    def adopt(self, host: np.ndarray, device: Device) -> HostBuffer:
        return HostBuffer(host)

    def to_host(self, buffer: Buffer, aval: ShapedArray) -> np.ndarray:
        assert isinstance(buffer, HostBuffer)
        buffer.wait()
        view = buffer.data.view()
        view.flags.writeable = False
        return view

    def copy(self, buffer: Buffer, aval: ShapedArray, source: Device, target: Device) -> Buffer:
        """The devices share the host's memory, and nothing is written to twice."""
        return buffer if source.backend is self else super().copy(buffer, aval, source, target)

    def twin(self, device: Device) -> Device:
        return self._devices[0]

    def synchronize(self, device: Device) -> None:
        device.queue.synchronize()


class HostArrayExecutable(Executable):
    """A function of NumPy arrays as a program; ``report`` remains to be said.

    ``count``: of its results; ``cost``: as ``HostQueue.run`` takes it.
    """

    def __init__(
        self, run: Callable[[Sequence[np.ndarray]], Sequence[Any]], count: int, cost: int, effects: Effects
    ) -> None:
        self._run = run
        self._count = count
        self._cost = cost
        self._effects = effects

    def _results(self, inputs: Sequence[Any]) -> Sequence[Any]:
        made: Any = self._run([b.data for b in inputs])
        if not isinstance(made, Sequence) or len(made) != self._count:
            raise PluginError(
                f"the function of {type(self).__name__} gave {made!r}, not a list of {self._count} arrays"
            )
        return made

    def launch(self, buffers: Sequence[Buffer], queue: Queue) -> tuple[list[Buffer], Token | None]:
        outs = [HostBuffer(_UNSET) for _ in range(self._count)]
        inputs: list[Any] = list(buffers)

        def work() -> None:
            values = self._results(inputs)
            for out, value in zip(outs, values, strict=True):
                out.data = np.asarray(value, order="C")
            inputs.clear()  # frees memory as soon as nobody needs it

        task = queue.run(work, list(buffers), self._cost)
        for out in outs:
            out.task = task
        return list(outs), task if self._effects else None
