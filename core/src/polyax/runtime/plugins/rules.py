"""Whether a loaded plugin keeps the rules of the hooks: names, arguments, results, and the version of the contract."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pluggy

from polyax.ir.primitive import Primitive
from polyax.meshes.memories import DEFAULT, KINDS
from polyax.runtime.contract import hooks
from polyax.runtime.contract.backend import API, Backend, BackendSpec, Device, Owner
from polyax.runtime.contract.hooks import PROJECT, HookError
from polyax.runtime.plugins.advice import close
from polyax.runtime.plugins.loader import Plugin
from polyax.runtime.plugins.versions import why_not_for

FUNCTIONS = {
    "probe": "give one that says why it can't be used here, such as lambda: None",
    "open": "give one that makes the backend, such as its class",
}
"""Those of a ``BackendSpec``, and how to come by one."""
HOOKS = tuple(name for name in vars(hooks) if name.startswith("polyax_"))


def hooks_of(plugin: Any) -> pluggy.HookRelay:
    """The hooks of ``plugin``, in a manager of its own: whatever it is or does, it can't disturb another plugin.

    Raises:
      HookError: a misspelt hook, a wrong argument, a forgotten marker, or no hook at all.
    """
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hooks)
    try:
        manager.register(plugin, name="it")
        manager.check_pending()
    except pluggy.PluginValidationError as e:
        raise HookError(_describe(e, manager, plugin)) from None
    if problem := _why_useless(manager, plugin):
        raise HookError(problem)
    return manager.hook


def _why_useless(manager: pluggy.PluginManager, plugin: Any) -> str | None:
    unmarked = [n for n in HOOKS if callable(getattr(plugin, n, None)) and n not in _implemented(manager, plugin)]
    if unmarked:
        return f"{', '.join(unmarked)} lacks the mark @polyax.hookimpl"
    if not _implemented(manager, plugin):
        return f"it implements none of the hooks {', '.join(HOOKS)}"
    return None


def _implemented(manager: pluggy.PluginManager, plugin: Any) -> list[str]:
    return [caller.name for caller in manager.get_hookcallers(plugin) or ()]


def _describe(error: pluggy.PluginValidationError, manager: pluggy.PluginManager, plugin: Any) -> str:
    unknown = [c.name for c in manager.get_hookcallers(plugin) or () if not c.has_spec()]
    if not unknown:
        return " ".join(str(error).split())
    return "; ".join(map(_unknown_hook, unknown))


def _unknown_hook(name: str) -> str:
    meant = close(name, HOOKS)
    suggestion = f"did you mean {meant!r}?" if meant else f"the hooks are {', '.join(HOOKS)}"
    return f"unknown hook {name!r}; {suggestion}"


def check_version(requires: Any, what: str) -> None:
    """Raises ``HookError`` unless ``what`` was written for this version of the contract, or says nothing of it."""
    if requires is not None and (reason := why_not_for(requires, API)):
        raise HookError(f"{what} {reason}; install versions that fit each other")


def checked_specs(answer: Any, plugin: Plugin) -> list[BackendSpec]:
    """What ``polyax_backends`` gave; ``HookError`` if it can't be used."""
    if isinstance(answer, BackendSpec) or not isinstance(answer, Iterable):
        raise HookError(f"polyax_backends gave {answer!r}, not a list of BackendSpec")
    specs = list(answer)
    for spec in specs:
        check_spec(spec, plugin)
    names = [spec.name for spec in specs]
    if twice := {name for name in names if names.count(name) > 1}:
        raise HookError(f"polyax_backends gave two of the name {twice.pop()!r}: one plugin brings a platform once")
    return specs


def check_spec(spec: Any, plugin: Plugin) -> None:
    """Raises ``HookError`` unless a result of ``polyax_backends`` can be used."""
    if not isinstance(spec, BackendSpec):
        raise HookError(f"polyax_backends gave {spec!r}, not a BackendSpec")
    name: Any = spec.name
    note: Any = spec.note
    if not isinstance(name, str) or not re.fullmatch(r"[\w-]+", name):
        remedy = "platforms are chosen by it, in settings too: give a word of letters, digits, _ and -"
        raise HookError(f"the name of a BackendSpec is {name!r}; {remedy}")
    if not isinstance(note, str):
        raise HookError(f"the note of the BackendSpec {name!r} is {note!r}, not a text")
    check_version(spec.requires, f"backend {spec.name!r}")
    for function, remedy in FUNCTIONS.items():
        if not callable(found := getattr(spec, function)):
            raise HookError(f"{function} of the BackendSpec {name!r} is {found!r}, not a function: {remedy}")
    if not callable(spec.priority):
        checked_priority(spec, spec.priority)
    if plugin.platform not in ("any", spec.name):
        raise HookError(
            f"entry point {plugin.entry!r} brings backend {spec.name!r}; its name must begin with {spec.name!r}"
        )


def checked_priority(spec: BackendSpec, priority: Any) -> int:
    """What the function that a spec has for its priority answered; ``HookError`` if that isn't one."""
    if not isinstance(priority, int):
        raise HookError(f"the priority of the BackendSpec {spec.name!r} is {priority!r}, not an int")
    return priority


def probed(spec: BackendSpec) -> str | None:
    """Why the platform can't be used here, if so; ``HookError`` if its probe says something else."""
    reason: Any = spec.probe()
    if reason is None or (isinstance(reason, str) and reason):
        return reason
    raise HookError(f"the probe of the BackendSpec {spec.name!r} gave {reason!r}, not a reason or None")


def opened(spec: BackendSpec, plugin: Plugin) -> Backend:
    """The backend that ``spec`` opens; ``HookError`` if it isn't the one that was promised."""
    backend: Any = spec.open()
    if not isinstance(backend, Backend):
        raise HookError(f"the BackendSpec {spec.name!r} opened {backend!r}, not a Backend")
    if backend.name != spec.name:
        raise HookError(f"the BackendSpec {spec.name!r} opened a backend named {backend.name!r}, not its own")
    backend.owner = Owner(plugin.title, plugin.remedy)
    counts: Any = backend.index_dtype
    if not isinstance(counts, np.dtype) or counts.name not in ("int64", "int32"):
        remedy = "it counts elements: give np.dtype('int64'), or np.dtype('int32') for narrower indices"
        raise HookError(f"index_dtype of backend {spec.name!r} is {counts!r}; {remedy}")
    if (kinds := backend.memory_kinds) is not None and not _are_kinds(kinds):
        remedy = f"give {DEFAULT!r} first, then of the others those that devices address: {', '.join(KINDS[1:])}"
        raise HookError(f"memory_kinds of backend {spec.name!r} is {kinds!r}; {remedy}")
    devices: Any = backend.devices()
    if not isinstance(devices, Sequence) or not devices or not all(isinstance(d, Device) for d in devices):
        raise HookError(f"devices() of backend {spec.name!r} gave {devices!r}, not its devices, of which there is one")
    if strangers := [d for d in devices if d.backend is not backend]:
        raise HookError(f"devices() of backend {spec.name!r} gave {strangers[0]!r}, a device of another backend")
    if wrong := [d for d in devices if not isinstance(d.id, int) or d.id < 0]:
        raise HookError(f"devices() of backend {spec.name!r} gave a device of the number {wrong[0].id!r}: count from 0")
    for it in (backend, *devices):
        if fault := _why_no_key(it):
            what = f"backend {spec.name!r}" if it is backend else f"a device of backend {spec.name!r}"
            raise HookError(f"{what} can't tell programs apart: {fault}; leave these methods as they are inherited")
    if len({d.id for d in devices}) < len(devices):
        raise HookError(f"devices() of backend {spec.name!r} gave {devices!r}, of which two have one number")
    for device in devices:
        if fault := _why_no_queue(device.queue):
            remedy = "give Device a polyax.backend.Queue, such as HostQueue(name), or none"
            raise HookError(f"devices() of backend {spec.name!r} gave {device!r}, whose queue {fault}; {remedy}")
    return backend


def _why_no_key(it: Any) -> str | None:
    """What is wrong with the hash, the equality or the text of a backend or a device, which caches and errors use."""
    for name, ask in {"__hash__": hash, "__eq__": lambda x: x == x, "__bool__": bool, "__repr__": repr}.items():
        try:
            answer: Any = ask(it)
        except Exception as e:
            return f"its {name} raised {type(e).__name__}: {e}"
        if answer is False:
            return f"its {name} says that it is none"
    return None


def _are_kinds(kinds: Any) -> bool:
    if not isinstance(kinds, (tuple, list)) or list(kinds[:1]) != [DEFAULT] or not set(KINDS).issuperset(kinds):
        return False
    return len(set(kinds)) == len(kinds)


def _why_no_queue(queue: Any) -> str | None:
    """What ``queue`` lacks of a ``Queue``, if anything."""
    if lacking := [name for name in ("run", "synchronize") if not callable(getattr(queue, name, None))]:
        return f"is {queue!r} without {' and '.join(lacking)}"
    try:
        inspect.signature(queue.run).bind(print, (), 0)
        inspect.signature(queue.synchronize).bind()
    except TypeError as e:
        return f"is {queue!r}, which can't be asked to run(work, inputs, cost) and to synchronize(): {e}"
    return None


def _lowerings(table: Any) -> Mapping[Primitive, Any]:
    if not isinstance(table, Mapping):
        raise HookError(f"polyax_lowerings gave {table!r}, not a mapping from primitives to lowerings")
    for primitive, lowering in table.items():
        if not isinstance(primitive, Primitive):
            raise HookError(f"polyax_lowerings gave a lowering of {primitive!r}, which is not a Primitive")
        lacking = [name for name in ("why_not", "priority") if not hasattr(lowering, name)]
        if lacking:
            raise HookError(
                f"polyax_lowerings gave {lowering!r} for {primitive.name!r}, which is not a lowering: "
                f"it has no {' and no '.join(lacking)}"
            )
        if not isinstance(lowering.priority, Real):
            raise HookError(
                f"the priority of the lowering of {primitive.name!r} is {lowering.priority!r}, not a number"
            )
    return table


def _fusers(fusers: Any) -> list[Any]:
    if not isinstance(fusers, Iterable):
        raise HookError(f"polyax_fusers gave {fusers!r}, not the fusers")
    found = list(fusers)
    for fuser in found:
        if not isinstance(getattr(fuser, "name", None), str) or not callable(getattr(fuser, "run", None)):
            raise HookError(f"polyax_fusers gave {fuser!r}, which is not a fuser: it needs a name and a function run")
    return found


def _commands(commands: Any) -> list[hooks.Command]:
    if not isinstance(commands, Iterable):
        raise HookError(f"polyax_commands gave {commands!r}, not the commands")
    found = list(commands)
    for command in found:
        if not isinstance(command, hooks.Command):
            raise HookError(f"polyax_commands gave {command!r}, which is not a Command")
    return found


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "polyax_lowerings": _lowerings,
    "polyax_fusers": _fusers,
    "polyax_commands": _commands,
}


def checked(hook: str, results: list[Any]) -> list[Any]:
    """What a hook gave; ``HookError`` if that is something else than it is to give."""
    check = _CHECKS.get(hook)
    return results if check is None else [check(result) for result in results]
