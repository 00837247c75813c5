"""Donation: whose memory results can have, and what becomes of the arrays that had it.

As in JAX an argument is taken only if there is a result as large as it is; others stay alive, and a warning names them
unless a result has as many elements of other bytes. What the program doesn't read isn't donated, without a warning,
unless unused arguments are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.inner.programs import alive
from polyax.ir.aval import ShapedArray
from polyax.ir.errors import PolyaxRuntimeError
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.runtime.arrays.array import Array, is_concrete
from polyax.runtime.contract.backend import Device
from polyax.runtime.contract.tracebacks import warn_user

Flags = tuple[bool, ...]


def taken(closed: ClosedJaxpr, donated: Flags, *, warned: bool = True) -> Flags:
    """Which of the donated inputs the program's results can have the memory of; nothing if there are none. Of those
    that no result is as large as, users are ``warned``.
    """
    if not any(donated):
        return ()
    if warned:
        _warn(closed, donated)
    found = fitting(closed.in_avals, closed.out_avals, donated)
    return found if any(found) else ()


def of_read(closed: ClosedJaxpr, donated: Flags) -> Flags:
    """The donated inputs that the program reads."""
    if not any(donated):
        return donated
    read = alive(closed)[1]
    return tuple([d and r for d, r in zip(donated, read, strict=True)])


def _warn(closed: ClosedJaxpr, donated: Flags) -> None:
    found = fitting(closed.in_avals, closed.out_avals, donated, _elements)
    left = [a for a, d, f in zip(closed.in_avals, donated, found, strict=True) if d and not f]
    if left:
        warn_user(
            f"Some donated buffers were not usable: {', '.join(map(str, left))}.\n"
            "No result is as large, so these arguments are kept as they are. See an explanation at "
            "https://docs.jax.dev/en/latest/faq.html#buffer-donation."
        )


def _elements(aval: ShapedArray) -> Any:
    return aval.size


def _bytes(aval: ShapedArray) -> Any:
    return aval.size, aval.dtype.itemsize


def fitting(
    ins: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
    donated: Flags,
    large: Callable[[ShapedArray], Any] = _bytes,
) -> Flags:
    """Which donated inputs have a result of their own: one of the same type, else one as ``large``."""
    found, free = set[int](), list(outs)
    for kind in (lambda a: (a.shape, a.dtype), large):
        alike: dict[Any, list[int]] = {}
        for n, aval in enumerate(ins):
            if donated[n] and n not in found:
                alike.setdefault(kind(aval), []).append(n)
        free = [out for out in free if not _meets(alike.get(kind(out)), found)]
    return tuple([n in found for n in range(len(ins))])


def _meets(inputs: list[int] | None, found: set[int]) -> bool:
    """Whether one of these inputs was left, which has been found then."""
    if not inputs:
        return False
    found.add(inputs.pop(0))
    return True


def refuse_reuse(args: Sequence[Any], donated: Sequence[bool]) -> None:
    """Raises PolyaxRuntimeError if an array that is donated comes as another argument too."""
    first: dict[int, int] = {}
    for n, x in enumerate(args):
        m = first.setdefault(id(x), n) if is_concrete(x) else n
        if m == n or not (donated[m] or donated[n]):
            continue
        if donated[m] and donated[n]:
            what, call = "donate the same buffer twice in Execute()", "f(donate(a), donate(a))"
        elif donated[m]:
            what, call = "use a buffer that was previously donated in the same call to Execute()", "f(donate(a), a)"
        else:
            what, call = "donate a buffer which is also used by the same call to Execute()", "f(a, donate(a))"
        raise PolyaxRuntimeError(
            f"INVALID_ARGUMENT: Attempt to {what} (flattened argument {n}, first use: {m}). Toy example for this bug: "
            f"`{call}`."
        )


def delete(args: Sequence[Any], donated: Sequence[bool], given: Sequence[Any], device: Device | None) -> None:
    """Deletes the donated arrays, but for those that were copied because they lay elsewhere.

    ``given``: what the program got of each, its buffer on ``device`` or, if that is None, its parts on several."""
    for x, d, got in zip(args, donated, given, strict=True):
        if d and is_concrete(x) and (x._device is device if device is not None else _gave(x, got)):
            x.delete()


def _gave(x: Array, parts: Sequence[Array]) -> bool:
    got = {*map(id, parts)}
    return any(id(part) in got for part in x.parts)
