"""Kinds of calls, for executables that can be called with a user's arguments as they come.

Knows no device, and not where calls come from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polyax.ir.aval import ShapedArray
from polyax.trace.tree import PyTreeDef

NativeCall = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""Positional arguments and those by name to a result, or NotImplemented."""


def later(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What an executable gives while the code for such calls is still being made: it is asked again at a later call."""
    return NotImplemented


class LeafKind(NamedTuple):
    """What a leaf of the arguments is.

    Args:
      type: its class, of which it has to be an instance itself; ``Array`` stands for an array on the device.
      aval: what the program takes it for; None, if it is a part of the program.
      value: such a part, to which it has to be equal.
      seat: where an array has to be.
    """

    type: type
    aval: ShapedArray | None
    value: Any = None
    seat: Any = None


@dataclass(frozen=True)
class CallKind:
    """Calls that one executable can run. Another call is none of them, and never an error.

    Args:
      seat: where its results are; it runs on that device, on which arrays among the arguments are.
      in_tree: the tree of all arguments, ``(args, kwargs)``, with parts of the program among its leaves.
      leaves: what these are.
      consts: buffers of the jaxpr's constants, which come before the inputs.
      out_tree, out_avals: the tree of the results, and their types.
      donated: for each leaf that isn't a part of the program, unless none is: whether the array is deleted, since its
        memory goes to results.
      told: what traces call such calls, a kind and a name; None if they aren't told of them.
    """

    seat: Any
    in_tree: PyTreeDef
    leaves: Sequence[LeafKind]
    consts: Sequence[Any]
    out_tree: PyTreeDef
    out_avals: Sequence[ShapedArray]
    donated: Sequence[bool] = ()
    told: tuple[str, str] | None = None
