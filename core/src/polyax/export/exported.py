"""``Exported``: a function's program with all that is needed to call it elsewhere, and its form as bytes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from polyax.export import calling, container, programs, trees
from polyax.export.container import Blobs
from polyax.export.dims import DimExpr
from polyax.export.scopes import SymbolicScope
from polyax.export.values import ValueReader, ValueWriter
from polyax.ir import effects as known_effects
from polyax.ir.aval import ShapedArray
from polyax.ir.dtypes import float0
from polyax.ir.effects import Effect
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.lazy import lazy
from polyax.meshes.sharding import NamedSharding
from polyax.trace.tree import PyTreeDef

EFFECTS = {
    e.name: e
    for e in (
        known_effects.debug_effect,
        known_effects.ordered_debug_effect,
        known_effects.io_effect,
        known_effects.ordered_io_effect,
    )
}


class DisabledSafetyCheck:
    """A check that is left out, when a program is exported or when it is called.

    >>> DisabledSafetyCheck.platform()
    platform
    """

    def __init__(self, _impl: str) -> None:
        self._impl = _impl

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """The program may be called on platforms that it wasn't exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Kept for compatibility: programs here call nothing by a name outside of them."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name that ``custom_call`` was given."""
        kind, _, name = self._impl.partition(":")
        return name if kind == "custom_call" else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)

    def __repr__(self) -> str:
        return self._impl


Shardings = tuple[NamedSharding | None, ...]


@dataclass(frozen=True)
class Exported:
    """A function that was exported: ``call`` calls it, ``serialize`` gives it as bytes.

    Attributes:
      fun_name: for error texts.
      in_tree, out_tree: the structures of ``(args, kwargs)`` and of the result.
      in_avals, out_avals: the types of their leaves, of which dimensions may be expressions.
      nr_devices: how many devices it runs on.
      platforms: those that it may be called on.
      ordered_effects, unordered_effects: what it does besides computing its results.
      disabled_safety_checks: checks to leave out.
      mlir_module_serialized: the program, in polyax's own form; there is no MLIR in it.
      calling_convention_version: kept for compatibility.
      module_kept_var_idx: the leaves that the program takes: all that hold information.
      uses_global_constants: whether it has symbolic dimensions.
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    _has_named_shardings: bool
    _in_named_shardings: Shardings
    _out_named_shardings: Shardings
    in_shardings_hlo: tuple[None, ...]
    out_shardings_hlo: tuple[None, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[Effect, ...]
    unordered_effects: tuple[Effect, ...]
    disabled_safety_checks: Sequence[DisabledSafetyCheck]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[[Exported], Exported] | None

    @lazy
    def program(self) -> ClosedJaxpr:
        """The program."""
        return programs.loads(self.mlir_module_serialized)

    def mlir_module(self, serialized: bool = True) -> Any:
        """The program as text, a jaxpr; the program itself if not ``serialized``."""
        return str(self.program) if serialized else self.program

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def in_shardings_jax(self, mesh: Any) -> Sequence[NamedSharding | None]:
        """How arguments lie on a mesh with the axes of the one that it was exported for."""
        return calling.on_mesh_of(self._in_named_shardings, mesh)

    def out_shardings_jax(self, mesh: Any) -> Sequence[NamedSharding | None]:
        """How results lie on such a mesh."""
        return calling.on_mesh_of(self._out_named_shardings, mesh)

    def has_vjp(self) -> bool:
        """Whether its derivative is known."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """Its pullback: takes the leaves of the arguments and a cotangent for each of the results.

        Raises:
          ValueError: it was saved without one.
        """
        if self._get_vjp is None:
            raise ValueError("No VJP is available")
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The function as bytes, for ``deserialize``.

        Args:
          vjp_order: how many times what is loaded can be differentiated in reverse mode.

        Raises:
          ValueError: a type in the structures isn't registered, or derivatives are asked for that aren't known.
        """
        blobs, levels, exported = Blobs(), [], self
        for order in range(vjp_order + 1):
            if order:
                if not exported.has_vjp():
                    raise ValueError("serialization of an Exported that does not have vjps of high-enough order")
                exported = exported.vjp()
            levels.append(_described(exported, blobs))
        text = {"kind": "exported", "polyax": version("polyax"), "levels": levels}
        return bytearray(container.write(text, blobs))

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The function's results, inside and outside of other programs.

        Raises:
          ValueError: arguments differ in structure, type or shape from those that it was exported for, or it is called
            on another platform.
        """
        return calling.call(self, args, kwargs)


def _described(e: Exported, blobs: Blobs) -> dict[str, Any]:
    return {
        "name": e.fun_name,
        "in_tree": trees.described(e.in_tree),
        "out_tree": trees.described(e.out_tree),
        "avals": [_plain(e.in_avals), _plain(e.out_avals)],
        "shardings": [_plain(e._in_named_shardings), _plain(e._out_named_shardings)],
        "devices": e.nr_devices,
        "platforms": list(e.platforms),
        "effects": [x.name for x in (*e.ordered_effects, *e.unordered_effects)],
        "disabled_checks": [str(c) for c in e.disabled_safety_checks],
        "convention": e.calling_convention_version,
        "program": blobs.add(e.mlir_module_serialized),
    }


def _plain(values: Sequence[Any]) -> list[Any]:
    """Types and shardings, which hold neither arrays nor programs."""
    return ValueWriter(Blobs(), _no_program).all(values)


def _no_program(_: Any) -> int:
    raise TypeError("types and shardings hold no programs")


def deserialize(blob: bytearray) -> Exported:
    """The function that was saved as these bytes. Nothing of them is executed. Its types aren't weak.

    Raises:
      ValueError: they are no exported function, aren't whole, or are of a version that this one can't read.

    >>> import polyax
    >>> from polyax import export
    >>> saved = export.export(polyax.jit(lambda x: x + 1))(1.0).serialize()
    >>> export.deserialize(saved).call(2.0).item()
    3.0
    """
    text, blobs = container.read(blob, "exported")
    try:
        return _loaded(text["levels"], blobs)
    except (KeyError, IndexError, TypeError, AttributeError) as e:
        raise ValueError(f"the exported program is damaged or of an unknown kind: {type(e).__name__}: {e}") from e


def _loaded(levels: Sequence[dict[str, Any]], blobs: Sequence[bytes]) -> Exported:
    this, *higher = levels
    module = blobs[this["program"]]
    program = programs.loads(module)
    read = ValueReader((), (), _scope(program))
    in_avals, out_avals = (tuple([a.strip_weak_type() for a in read.all(end)]) for end in this["avals"])
    ins, outs = (tuple(read.all(end)) for end in this["shardings"])
    found = assembled(
        module,
        name=this["name"],
        avals=(in_avals, out_avals),
        trees=(trees.structure(this["in_tree"]), trees.structure(this["out_tree"])),
        shardings=(ins, outs),
        nr_devices=this["devices"],
        platforms=tuple(this["platforms"]),
        effects=[EFFECTS[name] for name in this["effects"]],
        checks=tuple(map(DisabledSafetyCheck, this["disabled_checks"])),
        convention=this["convention"],
        get_vjp=functools.cache(lambda _: _loaded(higher, blobs)) if higher else None,
    )
    found.__dict__["program"] = program
    return found


def _scope(program: ClosedJaxpr) -> SymbolicScope:
    """That of the dimension variables in it."""
    dims = (d for a in (*program.in_avals, *program.out_avals) for d in a.shape if isinstance(d, DimExpr))
    first = next(dims, None)
    return SymbolicScope() if first is None else first.scope


def assembled(
    module: bytes,
    *,
    name: str,
    avals: tuple[Sequence[ShapedArray], Sequence[ShapedArray]],
    trees: tuple[PyTreeDef, PyTreeDef],
    shardings: tuple[Shardings, Shardings],
    nr_devices: int,
    platforms: tuple[str, ...],
    effects: Sequence[Effect],
    checks: Sequence[DisabledSafetyCheck],
    convention: int,
    get_vjp: Callable[[Exported], Exported] | None,
) -> Exported:
    """An ``Exported`` of a program's bytes."""
    ins, outs = map(tuple, avals)
    return Exported(
        fun_name=name,
        in_tree=trees[0],
        in_avals=ins,
        out_tree=trees[1],
        out_avals=outs,
        _has_named_shardings=True,
        _in_named_shardings=shardings[0],
        _out_named_shardings=shardings[1],
        in_shardings_hlo=(None,) * len(ins),
        out_shardings_hlo=(None,) * len(outs),
        nr_devices=nr_devices,
        platforms=platforms,
        ordered_effects=tuple(e for e in effects if e.ordered),
        unordered_effects=tuple(e for e in effects if not e.ordered),
        disabled_safety_checks=checks,
        mlir_module_serialized=module,
        calling_convention_version=convention,
        module_kept_var_idx=tuple([n for n, a in enumerate(ins) if a.dtype != float0]),
        uses_global_constants=calling.is_symbolic(ins),
        _get_vjp=get_vjp,
    )
