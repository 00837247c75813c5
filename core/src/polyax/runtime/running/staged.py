"""``Staged``: a traced program with the place where it is to run; from there to its entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from polyax.control.inner.lists import Mask, kept
from polyax.control.inner.programs import alive, hoisted, without_inputs
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.lazy import lazy
from polyax.meshes.axes import AbstractMesh
from polyax.meshes.memories import DEFAULT
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding, Sharding, SingleDeviceSharding
from polyax.ops.memories import kinds_of_results
from polyax.runtime.arrays.array import is_concrete
from polyax.runtime.arrays.placing import in_memory_of_kind
from polyax.runtime.contract.backend import Buffer, Device
from polyax.runtime.contract.calls import NativeCall
from polyax.runtime.running.compiling import compile_program
from polyax.runtime.running.donation import of_read
from polyax.runtime.running.meeting import Wish, layouts_of, meeting_place, wish_of
from polyax.runtime.running.meshed import Layouts, Meshed, common_abstract_mesh, no_devices, on_mesh
from polyax.runtime.running.programs import Entry, Moved, Program, buffers_of_consts, make_entry, make_mesh_entry
from polyax.runtime.running.whole import native_call
from polyax.trace.calls import UserCall
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten

Asked = Sharding | None
Names = Callable[[], Sequence[str]]


@dataclass(frozen=True)
class Staged:
    """``where``: a device, or how arguments and results lie on a mesh, constants first. On an abstract mesh the program
    can't run before ``on`` gives it devices."""

    name: str
    closed: ClosedJaxpr
    donated: tuple[bool, ...]
    where: Device | Layouts
    kinds: tuple[str | None, ...] = field(default=(), kw_only=True)
    """The kinds of memory that results are put into, unless all are where they are computed."""
    pinned: bool = field(default=False, kw_only=True)
    """Whether somebody named the device, so that results are committed to it, whatever arguments are."""
    keep_unused: bool = field(default=False, kw_only=True)
    """Whether the program gets arguments that it doesn't read too."""

    @property
    def place(self) -> Device | Mesh | AbstractMesh:
        return self.where if isinstance(self.where, Device) else self.where.mesh

    @property
    def devices(self) -> tuple[Device, ...]:
        """Raises a ValueError if there are none."""
        place = self.place
        if isinstance(place, AbstractMesh):
            raise no_devices(place)
        return (place,) if isinstance(place, Device) else place.device_list

    def on(self, devices: Sequence[Device]) -> Staged:
        """The same on ``devices``, where there were none."""
        return self if isinstance(self.where, Device) else replace(self, where=self.where.on(devices))

    @property
    def taken(self) -> Mask:
        """Which arguments the program takes: those that it doesn't read are left out, unless all are to be kept."""
        return (True,) * len(self.closed.in_avals) if self.keep_unused else alive(self.closed)[1]

    @property
    def given(self) -> tuple[bool, ...]:
        """The donated arguments that the program gets."""
        return self.donated if self.keep_unused else of_read(self.closed, self.donated)

    @lazy
    def meshed(self) -> Meshed:
        """The partitioned program, if it runs on a mesh."""
        assert isinstance(self.where, Layouts)
        jaxpr, consts = hoisted(self.closed)
        given = self.given
        donated = (False,) * len(consts) + given if any(given) else ()
        return on_mesh(jaxpr, self.where, self.name, donated)

    @lazy
    def program(self) -> Program:
        if isinstance(self.where, Device):
            return compile_program(self.closed, self.where, self.name, self.given)
        return self.meshed.program

    def entry(self, out_tree: PyTreeDef, moved: Moved | None) -> Entry:
        """What a call ends in, see ``make_entry``."""
        program, consts = self.program, self.closed.consts
        if isinstance(self.where, Device):
            entry = make_entry(program, consts, self.const_buffers, out_tree, moved, self.pinned)
        else:
            entry = make_mesh_entry(program, consts, out_tree, moved)
        return self._into_memories(entry) if self.kinds else entry

    @lazy
    def const_buffers(self) -> list[Buffer]:
        return buffers_of_consts(self.program, self.closed.consts)

    def native_call(self, call: UserCall, out_tree: PyTreeDef) -> NativeCall | None:
        """What runs calls like ``call`` without more ado, if the executable has such a function."""
        if self.kinds or not isinstance(self.where, Device):
            return None
        return native_call(self.program, self.const_buffers, call.whole(), out_tree, self.pinned, ("call", self.name))

    def _into_memories(self, entry: Entry) -> Entry:
        def with_kinds(leaves: Sequence[Any]) -> Any:
            outs, tree = tree_flatten(entry(leaves))
            pairs = zip(outs, self.kinds, strict=True)
            return tree_unflatten(tree, [x if k is None else in_memory_of_kind(x, k) for x, k in pairs])

        return with_kinds

    @property
    def in_shardings(self) -> list[Sharding]:
        """Where the arguments have to be."""
        if isinstance(self.where, Device):
            return [SingleDeviceSharding(self.where)] * len(self.closed.in_avals)
        return list(self.meshed.ins[len(self.closed.consts) :])

    @property
    def out_shardings(self) -> list[Sharding]:
        """Where the results will be."""
        if isinstance(self.where, Device):
            found: list[Sharding] = [SingleDeviceSharding(self.where)] * len(self.closed.out_avals)
        else:
            found = list(self.meshed.outs)
        kinds = self.kinds or (None,) * len(found)
        return [s if k is None else s.with_memory_kind(k) for s, k in zip(found, kinds, strict=True)]


def staged(
    name: str,
    closed: ClosedJaxpr,
    donated: tuple[bool, ...],
    asked: tuple[Sequence[Asked], Sequence[Asked]],
    leaves: Sequence[Any],
    names: Names | None = None,
    keep_unused: bool = False,
) -> Staged:
    """The program, with the place where its arguments are and the shardings want it to run.

    Raises:
      ValueError: these are different devices.
    """
    ins, outs = asked
    if nowhere := common_abstract_mesh([*ins, *outs]):
        layouts = Layouts.of(nowhere, [*layouts_of(closed.consts), *ins], outs)
        return Staged(name, closed, donated, layouts, keep_unused=keep_unused)
    kinds = _kinds(closed, outs)
    called = None if names is None else lambda: [f"{n} of {name}" for n in names()]
    free = [x if s is None or s.num_devices > 1 else None for x, s in zip(leaves, ins, strict=True)]
    where = meeting_place(free, called, _wishes(closed.consts, ins, outs), [closed])
    if isinstance(where, Mesh):
        given = [s or found for s, found in zip(ins, layouts_of(leaves), strict=True)]
        layouts = Layouts.of(where, [*layouts_of(closed.consts), *given], outs)
        return Staged(name, closed, donated, layouts, kinds=kinds, keep_unused=keep_unused)
    place = where if isinstance(where, Device) else where.device_list[0]
    pinned = any(s is not None for s in (*ins, *outs))
    return Staged(name, closed, donated, place, kinds=kinds, pinned=pinned, keep_unused=keep_unused)


def _kinds(closed: ClosedJaxpr, outs: Sequence[Asked]) -> tuple[str | None, ...]:
    """The kinds of memory that a user wants results in, by what is asked of them, else by what the program does."""
    found = zip(outs, kinds_of_results(closed), strict=True)
    kinds = tuple([k if s is None else s.memory_kind for s, k in found])
    return kinds if any(k not in (None, DEFAULT) for k in kinds) else ()


def _wishes(consts: Sequence[Any], ins: Sequence[Asked], outs: Sequence[Asked]) -> list[Wish]:
    """Arrays that are closed over come along, but for those on meshes."""
    closed_over = [x.sharding for x in consts if is_concrete(x) and x._seat is None]
    named = [s for s in closed_over if isinstance(s, NamedSharding)]
    found = [wish_of(s, lambda: "an array that is closed over") for s in named]
    found += [wish_of(s, lambda: "ARG_SHARDING") for s in ins if s is not None]
    return found + [wish_of(s, lambda: "explicit output sharding") for s in outs if s is not None]


def without_unread(
    name: str,
    closed: ClosedJaxpr,
    donated: tuple[bool, ...],
    outs: Sequence[Asked],
    leaves: Sequence[Any],
    names: Names | None,
) -> tuple[Staged, Mask] | None:
    """The program of the arguments that it reads, and which these are; None unless others were put elsewhere by name:
    what a program doesn't read has no say in where it runs.

    Raises:
      ValueError: the arguments that it reads were put on different devices.
    """
    committed = [is_concrete(x) and x.committed for x in leaves]
    if not any(committed):
        return None
    smaller, read = alive(closed)
    unread = [x for x, r, c in zip(leaves, read, committed, strict=True) if c and not r]
    if not unread:
        return None
    given = kept(read, leaves)
    named = None if names is None else lambda: kept(read, names())
    few = tuple(kept(read, donated)) if donated else ()
    found = staged(name, without_inputs(smaller, read), few, ([None] * len(given), outs), given, named)
    devices = set(found.devices)
    return (found, read) if any(x.sharding.device_set != devices for x in unread) else None


def entry_of(found: tuple[Staged, Mask], out_tree: PyTreeDef) -> Entry:
    """For calls with arguments that lie as those it was made for."""
    program, read = found
    entry = program.entry(out_tree, None)
    return lambda leaves: entry(kept(read, leaves))
