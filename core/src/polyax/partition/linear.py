"""Sums that are made after linear operations: of fewer, or of less, than before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyax.ir.jaxpr import Atom, Eqn, Var
from polyax.meshes.spec import Sums
from polyax.ops.resharding import reshard_p

ADDING = frozenset(("add", "sub"))
"""Of two sums, they make one."""
SHRINKING = frozenset(("reduce_sum", "slice"))
"""Of a sum, they leave less."""
KEEPING = frozenset(("concatenate", "copy", "expand_dims", "neg", "reshape", "squeeze", "transpose"))
"""Other operations of which the sum may as well be made afterwards, if all their operands are such sums."""
SCALING = frozenset(("mul",))
"""Likewise if one of their operands is."""
GROWING = frozenset(("broadcast_in_dim", "convert_element_type", "split"))
"""Operations that make more of a sum, or another type: for those sums alone that types tell of."""


def waiting(eqn: Eqn, sums: Sequence[Sums]) -> list[Sums] | None:
    """For each operand the sums that it may come with, which are made of the result then; None: there are none."""
    name, own = eqn.primitive.name, list(sums[: len(eqn.invars)])
    found = [s for s in own if s]
    if not found or any(s != found[0] for s in found):
        return None
    if name in SCALING:
        return own if len(found) == 1 else None
    if name == "dynamic_slice":
        return own if own[0] else None
    if name == "select_n":
        return own if not own[0] and len(found) == len(own) - 1 else None
    return own if len(found) == len(own) and name in ADDING | SHRINKING | KEEPING | GROWING else None


def gains(var: Var, readers: Mapping[Atom, Eqn | None], known: dict[Var, bool]) -> bool:
    """Whether there is something to gain if a sum isn't made before what reads it: it leads to one that adds it to
    others, or of which less is left. ``known``: the answers so far; all on the way to one have the same."""
    way = [var]
    while way[-1] not in known and (following := _following(way[-1], readers)) is not None:
        if isinstance(following, bool):
            known[way[-1]] = following
        else:
            way.append(following)
    answer = known.get(way[-1], False)
    known.update(dict.fromkeys(way, answer))
    return answer


def _following(var: Var, readers: Mapping[Atom, Eqn | None]) -> Var | bool | None:
    """Whether there is something to gain, or the value of which that is to be asked; None if nobody alone reads it."""
    reader = readers.get(var)
    if reader is None:
        return None
    name = reader.primitive.name
    if name in ADDING:
        return all(type(a) is Var and readers.get(a) is reader for a in reader.invars)
    if name in SHRINKING or reader.primitive is reshard_p:
        return True
    return reader.outvars[0] if name in KEEPING or name in SCALING else False
