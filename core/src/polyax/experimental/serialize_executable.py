"""``polyax.experimental.serialize_executable``: compiled functions as bytes, and back.

What is saved is the program, in the form of ``polyax.export``: it is compiled again where it is loaded, on any
platform, and nothing of the bytes is executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.api.ahead import struct
from polyax.api.jit import PjitFunction
from polyax.api.stages import Compiled
from polyax.export import container, programs
from polyax.extend.core import jaxpr_as_fun
from polyax.ir.refs import is_ref
from polyax.runtime.arrays import devices as places
from polyax.runtime.contract.backend import Backend, Device
from polyax.trace.tree import PyTreeDef, tree_leaves, tree_unflatten

__all__ = ["deserialize_and_load", "serialize"]


def serialize(compiled: Compiled) -> tuple[bytes, PyTreeDef, PyTreeDef]:
    """A compiled function as bytes, and the structures of its arguments and of its results.

    Raises:
      ValueError: it runs on several devices; ``polyax.export`` saves such functions. Or it holds a reference.
      NotImplementedError: it holds Python functions, or primitives of users; the text says which and where.

    >>> import polyax, polyax.numpy as jnp
    >>> compiled = polyax.jit(lambda x: x + 1).lower(1.0).compile()
    >>> deserialize_and_load(*serialize(compiled))(2.0).item()
    3.0
    """
    if not isinstance(compiled.device, Device):
        raise ValueError(
            f"Compilation does not support serialization: {compiled.fun_name} runs on several devices, "
            f"{compiled.device}. polyax.export saves functions with their shardings."
        )
    if any(map(is_ref, compiled._parts.jaxpr.consts)):
        raise ValueError(
            f"Compilation does not support serialization: can't serialize with a closed-over mutable array ref, as in "
            f"{compiled.fun_name}. Pass the reference as an argument."
        )
    blobs = container.Blobs()
    program = blobs.add(programs.dumps(compiled._parts.jaxpr))
    text = {"kind": "executable", "name": compiled.fun_name, "program": program, "donated": compiled.donate_argnums}
    return container.write(text, blobs), compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    backend: str | Backend | None = None,
    execution_devices: Sequence[Device] | None = None,
) -> Compiled:
    """What ``serialize`` was given, compiled for a device.

    Args:
      serialized, in_tree, out_tree: what it returned.
      backend: the platform, by default that of the default device.
      execution_devices: the device to run on, alone.

    Raises:
      ValueError: the bytes are no such function, aren't whole, or are of a version that this one can't read; or there
        are several devices, or ones of another platform than ``backend``.
    """
    text, blobs = container.read(serialized, "executable")
    closed = programs.loads(blobs[text["program"]])

    def fun(*args: Any, **kwargs: Any) -> Any:
        return tree_unflatten(out_tree, jaxpr_as_fun(closed, *tree_leaves((args, kwargs))))

    fun.__name__ = fun.__qualname__ = text["name"]
    args, kwargs = tree_unflatten(in_tree, map(struct, closed.in_avals))
    donated = _donated(args, set(text["donated"]))
    made = PjitFunction(fun, None, None, donated, None, _device(backend, execution_devices), None, inline=False)
    return made.lower(*args, **kwargs).compile()


def _donated(args: Sequence[Any], leaves: set[int]) -> list[int]:
    """The arguments all of whose leaves, numbered through, may be reused."""
    found, first = [], 0
    for n, arg in enumerate(args):
        own = range(first, first := first + len(tree_leaves(arg)))
        if own and leaves.issuperset(own):
            found.append(n)
    return found


def _device(backend: str | Backend | None, execution_devices: Sequence[Device] | None) -> Device:
    name = backend if backend is None or isinstance(backend, str) else backend.name
    if execution_devices is None:
        return places.default_device_now() if name is None else places.devices(name)[0]
    if len(execution_devices) != 1:
        raise ValueError(f"the program runs on one device, got {len(execution_devices)} execution_devices")
    (device,) = execution_devices
    if name is not None and device.platform != name:
        raise ValueError(
            f"Execution devices belong to a client other than `backend`. Got backend: {name} and {device} of "
            f"{device.platform}"
        )
    return device
