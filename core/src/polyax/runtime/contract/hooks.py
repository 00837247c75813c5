"""The hook specifications: everything that a plugin can tell polyax. All are called on cold paths alone.

A plugin is a module (or object) with functions marked ``@polyax.hookimpl`` that are named as the ones here. It is
found through an entry point of the group ``polyax`` whose name begins with its platform: ``cpu``, ``cpu.fastdot``,
``any.fusion``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pluggy

from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive
from polyax.runtime.contract import edge
from polyax.runtime.contract.backend import Backend, BackendSpec, Device, Executable, Report
from polyax.runtime.contract.processes import ProcessSpec

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

PROJECT = "polyax"
"""The name of the pluggy project, and of the entry-point group."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

WhyNot = Callable[[Sequence[ShapedArray], Mapping[str, Any]], str | None]
"""``why_not(avals, params)``: the reason to decline a use of the primitive, or None; asked at compile time."""


class Lowering(Protocol):
    """How a primitive runs on a backend; backends agree on the rest of its form with the plugins that they call."""

    @property
    def why_not(self) -> WhyNot: ...

    @property
    def priority(self) -> int: ...


class Offer(NamedTuple):
    """A lowering, and whose it is: ``rule`` is what reports call it."""

    rule: str
    lowering: Lowering


class FusionPass(Protocol):
    """A fuser: ``run(graph, limits)`` gives a backend's kernel graph with fewer kernels."""

    @property
    def name(self) -> str: ...

    @property
    def run(self) -> Callable[[Any, Any], Any]: ...


class Chosen(NamedTuple):
    """A fuser that is to run, and whose it is."""

    whose: str
    fuser: FusionPass


class HookError(TypeError):
    """A plugin breaks a rule of the hooks; the text says which, and what is right."""


@dataclass(frozen=True)
class CompileEvent:
    """An executable was built from ``jaxpr``; ``seconds`` is what that took."""

    name: str
    device: Device
    executable: Executable
    seconds: float
    jaxpr: ClosedJaxpr
    mesh: Any = None
    """The ``Mesh`` on whose devices the program runs, of which ``device`` is the first; None: on this device alone."""
    moves: Sequence[Any] = ()
    """What devices of the mesh exchange: ``partition.Move``."""

    def report(self) -> Report:
        """That of the executable; an error in it is the backend's, not that of the plugin that asks."""
        return edge.report(self.executable, self.device, self.name)


@dataclass(frozen=True)
class Command:
    """``python -m polyax NAME``."""

    name: str
    help: str
    """What it does, in a line."""
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    """Gives the exit status; may raise ``UsageError``, whose text is shown."""


@hookspec
def polyax_backends() -> Iterable[BackendSpec]:  # pyright: ignore[reportReturnType]
    """The platforms that this plugin brings. Called when a device is first needed, never at import.

    Two plugins that bring a platform of one name are an error that names both.
    """


@hookspec
def polyax_lowerings(backend: Backend) -> Mapping[Primitive, Lowering] | None:
    """How primitives run on ``backend``; None if this plugin has nothing for it. Called once per opened backend.

    Of several claims on one primitive the one with the highest ``priority`` is asked first; one that declines leaves
    the next to be asked. Equal priorities are an error that names both plugins.
    """


@hookspec
def polyax_fusers(backend: Backend) -> Iterable[FusionPass] | None:
    """Fusion passes for ``backend``, by their ``name``. Called once per opened backend.

    Which of them run, and in which order, is decided by the backend's ``fusers`` or by ``config.fusers``.
    """


@hookspec
def polyax_compiled(event: CompileEvent) -> None:
    """Called after an executable was built; never per launch. The result is ignored."""


@hookspec
def polyax_commands() -> Iterable[Command]:  # pyright: ignore[reportReturnType]
    """Commands of ``python -m polyax``. Called when the command line is read, of plugins for any platform.

    A command whose name is taken is left out, and the user is told.
    """


@hookspec
def polyax_draw(event: CompileEvent) -> Any:
    """A picture of a compiled program, which ``polyax.draw`` returns as it is; None leaves it to another plugin.

    The event's executable was made to be looked at: its report holds the program and the stages of its compilation.
    """


@hookspec
def polyax_processes() -> ProcessSpec:  # pyright: ignore[reportReturnType]
    """How the processes that a program was started in are connected. Called by ``distributed.initialize`` alone.

    The first plugin whose ``probe`` gives no reason against it is asked to connect them.
    """
