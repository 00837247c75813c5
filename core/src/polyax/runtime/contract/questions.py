"""What the core asks of backends beside launches and transfers; answers are looked at, and what is raised gets a note.

Must not know what is done with the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.runtime.contract.backend import Buffer, CompileOptions, Device, Executable, Meaning
from polyax.runtime.contract.calls import CallKind, NativeCall, later
from polyax.runtime.contract.collectives import Group
from polyax.runtime.contract.whose import NONE, ask, broken, tell
from polyax.trace.tree import tree_flatten


def why_no_dtype(dtype: Any, device: Device) -> str | None:
    """The reason why arrays of a dtype can't live on the device."""
    reason = ask(device, device.backend, "why_no_dtype", dtype, kinds=(str, NONE), what="a reason or None")
    if reason == "":
        raise broken(device, "why_no_dtype gave '', not a reason or None")
    return reason


def too_large(aval: ShapedArray, device: Device) -> str | None:
    """The reason why the device can't count the elements of an array, and what can be done."""
    if aval.size < 1 << 31:  # nearly always
        return None
    kind = device.backend.index_dtype
    if aval.size <= (most := np.iinfo(kind).max):
        return None
    return (
        f"it has {aval.size:,} elements, and {device.platform} counts them in {kind}, up to {most:,}. Compute it in "
        "parts (jax.numpy.split, or jax.lax.map along an axis), or choose another device."
    )


def twin(device: Device) -> Device:
    """The device for which programs are compiled that this one can launch."""
    return ask(device, device.backend, "twin", device, kinds=Device, what="a Device")


def synchronize(device: Device) -> None:
    """Waits until everything that was started on it has ended."""
    ask(device, device.backend, "synchronize", device, kinds=object, what="")


def collectives(devices: Sequence[Device], *arguments: Any) -> Group:
    """How the members of a program meet; ``arguments``: axes, and the connection of their processes."""
    first = devices[0]
    return ask(first, first.backend, "collectives", devices, *arguments, kinds=Group, what="a Group")


def native_call(executable: Executable, device: Device, kind: CallKind) -> NativeCall | None:
    """What runs calls of this kind, if the backend has something for them."""
    what = "a function, polyax.backend.later or None"
    made = ask(device, executable, "native_call", kind, kinds=(Callable, NONE), what=what)
    return _checked(made, device, kind) if config.checks and made is not None and made is not later else made


def _checked(call: NativeCall, device: Device, kind: CallKind) -> NativeCall:
    """``call``, whose results are looked at."""

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            made = call(args, kwargs)
        except BaseException as e:
            tell(e, device, "a native call was run on")
            raise
        if made is not NotImplemented and (fault := _why_not_results(made, kind)):
            raise broken(device, f"a native call gave {fault}")
        return made

    return run


def _why_not_results(made: Any, kind: CallKind) -> str | None:
    leaves, tree = tree_flatten(made)
    if tree != kind.out_tree:
        return f"{made!r}, not results like {kind.out_tree}"
    for n, (x, aval) in enumerate(zip(leaves, kind.out_avals, strict=True)):
        found = getattr(x, "aval", None)
        if found != aval:
            return f"{x!r} for result {n}, not an array of type {aval}"
    return None


def meanings(closed: ClosedJaxpr, options: CompileOptions, inputs: Sequence[np.ndarray]) -> Sequence[Meaning]:
    """What the program computes after each part of the compiler, as far as the backend can say."""
    device, what = options.device, "a list of Meaning"
    return ask(device, device.backend, "meanings", closed, options, inputs, kinds=(list, tuple), what=what)


def chained(executable: Executable, device: Device, *arguments: Any) -> Executable | None:
    """One executable for a chain of programs, if the backend makes one."""
    return ask(device, executable, "chained", *arguments, kinds=(Executable, NONE), what="an Executable or None")


def ready(buffer: Buffer, device: Device) -> bool:
    """Whether the contents are there."""
    return bool(ask(device, buffer, "ready", kinds=(bool, np.bool_), what="whether the contents are there"))


def address(buffer: Buffer, device: Device) -> int:
    """Where the contents are, if the device tells."""
    return ask(device, buffer, "address", kinds=int, what="an address")
