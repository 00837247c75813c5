"""The edge between the core and backends. What backends return is checked here: counts, classes, sizes, types; and what
they raise keeps its class, with one note that says whose it is.

On the path of every launch: it costs less than 0.3 microseconds. Must not know how plugins are found.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir import blame
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.source import user_source
from polyax.runtime.contract.backend import Buffer, CompileOptions, Device, Executable, Token
from polyax.runtime.contract.collectives import Axes
from polyax.runtime.contract.queue import HostBuffer
from polyax.runtime.contract.report import Report
from polyax.runtime.contract.whose import NONE, ask, broken, owner, tell

Typed = tuple[str, Sequence[ShapedArray]]
Launch = Callable[[Sequence[Any], Any], tuple[Sequence[Any], Any]]

_classes: set[type] = set()
"""Of buffers, as far as any were met."""
_makers: weakref.WeakKeyDictionary[Buffer, tuple[str, Any]] = weakref.WeakKeyDictionary()
"""Of buffers that were in the making when a launch returned: its program, and the user's line."""


def compile_for(device: Device, jaxpr: ClosedJaxpr, options: CompileOptions) -> Executable:
    """The backend's executable.

    Raises:
      PluginError: it gives something else.
    """
    compile = device.backend.compile
    if config.checks:
        compile = _named(compile, f"program {options.name!r}, compiled for", device)
    try:
        made: Any = compile(jaxpr, options)
    except BaseException as e:
        tell(e, device, f"program {options.name!r} was compiled for")
        raise
    if not isinstance(made, Executable):
        raise broken(device, f"compile gave {made!r} for program {options.name!r}, not an Executable")
    return made


def _named(function: Any, what: str, device: Device) -> Any:
    from polyax.runtime.contract.crashes import named  # nobody else needs it

    title, remedy = owner(device.backend)
    return named(function, f"{what} {device}, of {title}; the remedy: {remedy}")


def launcher(executable: Executable, device: Device, name: str, avals: Sequence[ShapedArray]) -> Launch:
    """``executable.launch``, whose results are as many buffers as there are ``avals``, each with room for its array.

    Raises (when called):
      PluginError: they are not.
    """
    launch = executable.launch
    if config.checks:
        launch = _named(launch, f"program {name!r} on", device)
    sizes = [a.stored.nbytes for a in avals]
    count, most, classes = len(sizes), max(sizes, default=0), _classes

    def run(buffers: Sequence[Any], queue: Any) -> tuple[Sequence[Any], Any]:
        try:
            made = launch(buffers, queue)
            if type(made) is tuple and len(made) == 2 and type(outs := made[0]) is list and len(outs) == count:
                for b in outs:
                    if type(b) is HostBuffer:  # its nbytes, without a call
                        if b.task is not None or b.data.nbytes < most:
                            break
                    elif type(b) not in classes or (b.nbytes or 0) < most:
                        break
                else:
                    return made  # nearly always
        except BaseException as e:
            tell(e, device, f"program {name!r} was run on")
            raise
        _check_results(made, sizes, device, name, avals)
        return made

    return run


def _check_results(made: Any, sizes: Sequence[int], device: Device, name: str, avals: Sequence[ShapedArray]) -> None:
    if type(made) is not tuple or len(made) != 2 or type(made[0]) is not list or len(made[0]) != len(sizes):
        raise broken(device, _wrong_form(made, name, len(sizes)))
    for n, (b, least) in enumerate(zip(made[0], sizes)):
        size = _size(b, device, f"launch of program {name!r}")
        if size is None:
            _remember(b, name)
        elif size < least:
            what = f"{size} bytes for result {n}, which is {avals[n]} ({least} bytes)"
            raise broken(device, f"launch of program {name!r} gave {what}")


def _wrong_form(made: Any, name: str, count: int) -> str:
    what = f"launch of program {name!r} gave "
    if type(made) is tuple and len(made) == 2 and type(made[0]) is list:
        return f"{what}{len(made[0])} results, and the program has {count}"
    return f"{what}{made!r}, not a pair of the list of its results' buffers and a token, or None"


def _size(buffer: Any, device: Device, what: str) -> int | None:
    """How many bytes it has, of which nobody knows yet whether it is a buffer."""
    if type(buffer) not in _classes:
        if not isinstance(buffer, Buffer):
            raise broken(device, f"{what} gave {buffer!r} of class {type(buffer).__name__}, not a Buffer")
        _classes.add(type(buffer))
    try:
        size: Any = buffer.nbytes
    except BaseException as e:
        tell(e, device, f"the size of what {what} gave was asked of")
        raise
    if size is not None and not isinstance(size, int):
        raise broken(device, f"{what} gave a buffer whose nbytes are {size!r}, not a number or None")
    return size


def _remember(buffer: Buffer, name: str) -> None:
    if type(buffer).__weakrefoffset__:
        _makers[buffer] = name, user_source()


def _maker(buffer: Buffer) -> tuple[str, Any]:
    return _makers.get(buffer, ("", None)) if type(buffer).__weakrefoffset__ else ("", None)


def launch_members(
    executable: Executable, device: Device, members: Sequence[Sequence[Any]], axes: Axes, program: Typed
) -> tuple[Sequence[Sequence[Any]], Any]:
    """What ``executable.launch_members`` gives: as many lists as there are members, each as for ``launcher``.

    ``program``: its name, and the types of its results.

    Raises:
      PluginError: it gives something else.
    """
    name, avals = program
    try:
        made: Any = executable.launch_members(members, device.queue, axes)
    except BaseException as e:
        tell(e, device, f"program {name!r} was run on {len(members)} devices from")
        raise
    if type(made) is not tuple or len(made) != 2 or type(made[0]) is not list or len(made[0]) != len(members):
        what = f"not a pair of the lists of {len(members)} members' buffers and a token, or None"
        raise broken(device, f"launch_members of program {name!r} gave {made!r}, {what}")
    for outs in made[0]:
        _check_results((outs, None), [a.stored.nbytes for a in avals], device, name, avals)
    return made


def token(made: Any, device: Device, name: str) -> Token:
    """What a launch gave for effects that are still to come.

    Raises:
      PluginError: it isn't a Token, or lacks what tokens tell.
    """
    if not isinstance(made, Token):
        raise broken(device, f"launch of program {name!r} gave {made!r} as its token, not a Token or None")
    if lacking := [what for what in ("done", "error", "told") if not hasattr(made, what)]:
        raise broken(device, f"launch of program {name!r} gave {made!r} as its token, without {', '.join(lacking)}")
    return made


# --- memory -----------------------------------------------------------------------------------------------------------


def to_device(host: np.ndarray, device: Device) -> Buffer:
    """A copy of ``host`` on the device.

    Raises:
      PluginError: the backend gives no buffer with room for it.
    """
    try:
        made: Any = device.backend.to_device(host, device)
    except BaseException as e:
        tell(e, device, f"an array of type {host.dtype}{list(host.shape)} was copied to")
        raise
    return _received(made, host.nbytes, device, "to_device")


def copy(buffer: Buffer, aval: ShapedArray, source: Device, target: Device) -> Buffer:
    """A copy on ``target`` of what is on ``source``; ``aval``: as it is stored.

    Raises:
      PluginError: the backend gives no buffer with room for it.
    """
    try:
        made: Any = target.backend.copy(buffer, aval, source, target)
    except BaseException as e:
        tell(e, target, f"an array of type {aval} was copied from {source} to")
        raise
    return _received(made, aval.nbytes, target, "copy")


def into_memory(buffer: Buffer, aval: ShapedArray, device: Device, kind: str) -> Buffer:
    """What is in ``buffer`` in another kind of the device's memory; ``aval``: as it is stored.

    Raises:
      PluginError: the backend gives no buffer with room for it.
    """
    made = ask(device, device.backend, "into_memory", buffer, aval, device, kind, kinds=Buffer, what="a Buffer")
    return _received(made, aval.nbytes, device, "into_memory")


def _received(made: Any, least: int, device: Device, what: str) -> Buffer:
    size = _size(made, device, what)
    if size is not None and size < least:
        raise broken(device, f"{what} gave a buffer of {size} bytes for an array of {least}")
    return made


def to_host(buffer: Buffer, aval: ShapedArray, device: Device) -> np.ndarray:
    """What is in ``buffer``; ``aval``: as it is stored.

    Raises:
      The error of the computation that was to make it.
      PluginError: it isn't of that type.
    """
    try:
        host: Any = device.backend.to_host(buffer, aval)
    except BaseException as e:
        late(e, buffer, aval, device)
        raise
    if type(host) is not np.ndarray or host.shape != aval.shape or host.dtype != aval.dtype:
        found = f"{host.dtype}{list(host.shape)}" if isinstance(host, np.ndarray) else repr(host)
        made = f", a result of program {name!r}" if (name := _maker(buffer)[0]) else ""
        raise broken(device, f"to_host gave {found} for an array of type {aval}{made}")
    return host


def late(error: BaseException, buffer: Buffer, aval: ShapedArray, device: Device) -> None:
    """Says whose error it is that comes to light where somebody waits for an array."""
    name, source = _maker(buffer)
    blame.about(error, source=source)
    name = blame.facts(error).get("program", name)
    tell(error, device, f"program {name!r} was run on" if name else f"an array of type {aval} was made on")


def adopt(host: np.ndarray, aval: ShapedArray, device: Device) -> Buffer | None:
    """A buffer that is the memory of ``host``, if the device can have that.

    Raises:
      PluginError: the backend gives something else.
    """
    made = ask(device, device.backend, "adopt", host, device, kinds=(Buffer, NONE), what="a Buffer or None")
    return made if made is None else _received(made, aval.stored.nbytes, device, "adopt")


# --- reports ----------------------------------------------------------------------------------------------------------


def report(executable: Executable, device: Device | None, name: str) -> Report:
    """What the executable tells of itself; ``device``: None, if it is the core's own.

    Raises:
      PluginError: it gives something else than a Report.
    """
    if device is None:
        return executable.report()
    try:
        found: Any = executable.report()
    except BaseException as e:
        tell(e, device, f"the report of program {name!r} was made for")
        raise
    if not isinstance(found, Report):
        raise broken(device, f"report of program {name!r} gave {found!r}, not a Report")
    return found
